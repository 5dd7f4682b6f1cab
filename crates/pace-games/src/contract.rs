//! Conformance checks of the [`Game`] and [`Peer`] traits, for the games of this crate and for games of other crates.
//!
//! Tests of one particular game are in that game's folder.

use crate::arena::{Arena, PeerObservationMode, StepBuffers};
use crate::ego::play_encounter;
use crate::encounter::{Encounter, PeerStepBuffers};
use crate::game::{Action, Boundary, Game, MAX_SEATS, NO_ACTION, Seat};
use crate::peer::{Peer, PeerSpec, PeerTuple, SpecOf};
use crate::seed::Seed;

/// A check that a game failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{game}: {check}: {detail}")]
pub struct ContractViolation {
    /// The game's id.
    pub game: &'static str,
    /// The check that failed.
    pub check: &'static str,
    /// The violation.
    pub detail: String,
}

/// Plays `game` with random egos against all its peers. Returns the names of the checks, or the first violation.
pub fn check_contract<G: Game>(game: &G, seed: Seed) -> Result<Vec<&'static str>, ContractViolation> {
    let checks: [(&'static str, Check<G>); 9] = [
        ("the spec is valid", spec_is_valid),
        ("the pool fits the spec", pool_fits_spec),
        ("symmetries permute observations, actions and classes", symmetries_are_permutations),
        ("every observation is written in full and finite", observations_are_complete),
        ("peers choose legal actions and keep their behaviour", peers_are_legal),
        ("every state is possible, can be rendered, and survives writing and reading", states_round_trip),
        ("episodes end within the horizon, encounters after their last episode", episodes_end_in_time),
        ("the same seed gives the same play, alone and in an arena", same_seed_same_play),
        ("every reference plays an encounter", references_play),
    ];
    checks
        .into_iter()
        .map(|(name, check)| {
            check(game, seed).map(|()| name).map_err(|detail| ContractViolation {
                game: G::ID,
                check: name,
                detail,
            })
        })
        .collect()
}

type Check<G> = fn(&G, Seed) -> Result<(), String>;

/// Episodes per encounter: few, so that the checks of any game take seconds.
const N_EPISODES: usize = 3;

fn ensure(holds: bool, detail: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(detail()) }
}

fn spec_is_valid<G: Game>(game: &G, _seed: Seed) -> Result<(), String> {
    let spec = game.spec();
    ensure(spec.id == G::ID, || format!("the spec's id is {:?}, the game's {:?}", spec.id, G::ID))?;
    ensure(!G::README.trim().is_empty(), || "the README is empty".to_owned())?;
    ensure(spec.observation_size > 0, || "observations have no length".to_owned())?;
    ensure((1..usize::from(NO_ACTION)).contains(&spec.n_actions()), || {
        format!("{} actions", spec.n_actions())
    })?;
    ensure((2..=MAX_SEATS).contains(&spec.n_seats()), || format!("{} seats", spec.n_seats()))?;
    ensure(spec.episodes_per_encounter > 0 && spec.horizon_steps > 0, || {
        "an encounter or an episode has no length".to_owned()
    })
}

fn pool_fits_spec<G: Game>(game: &G, seed: Seed) -> Result<(), String> {
    let pool = game.pool();
    let n_peers = game.spec().n_peers();
    ensure(pool.n_classes().len() == n_peers, || {
        format!("tuples have {} peers, the spec {n_peers}", pool.n_classes().len())
    })?;
    for (slot, n_classes) in pool.n_classes().iter().enumerate() {
        let traits = |tuple: &PeerTuple<SpecOf<G>>| tuple.specs[slot].behaviour_vector();
        let n_traits = traits(&pool.train()[0]).len();
        for tuple in pool.all() {
            let traits = traits(tuple);
            ensure(
                traits.len() == n_traits && traits.iter().all(|value| (0.0..=1.0).contains(value)),
                || format!("slot {slot} has {n_traits} traits from 0 to 1, but {tuple:?} has {traits:?}"),
            )?;
        }
        for class in 0..*n_classes {
            ensure(pool.train().iter().any(|tuple| tuple.classes[slot] == class), || {
                format!("class {class} of slot {slot} has no training peer")
            })?;
        }
        for (one, other) in pairs(pool.train()) {
            let same_class = one.classes[slot] == other.classes[slot];
            ensure(same_class == (one.specs[slot] == other.specs[slot]), || {
                format!("classes and behaviours of slot {slot} disagree: {one:?} and {other:?}")
            })?;
        }
    }
    let sampled = game.sample_tuple(&mut seed.stream("draw"));
    ensure(sampled.specs.len() == n_peers, || format!("a sampled tuple has {} peers", sampled.specs.len()))?;
    ensure(pool == game.pool(), || "two calls give different pools".to_owned())
}

fn symmetries_are_permutations<G: Game>(game: &G, seed: Seed) -> Result<(), String> {
    let Some(symmetries) = game.symmetries() else { return Ok(()) };
    let (spec, pool) = (game.spec(), game.pool());
    let is_permutation = |indices: &mut dyn Iterator<Item = usize>, n: usize| {
        let mut indices: Vec<usize> = indices.collect();
        indices.sort_unstable();
        indices.into_iter().eq(0..n)
    };
    for (index, transform) in symmetries.transforms.iter().enumerate() {
        let broken = |what: &str| format!("transform {index} does not permute the {what}");
        let entries = &mut transform.entries.iter().map(|(from, _)| *from);
        ensure(is_permutation(entries, spec.observation_size), || broken("observation"))?;
        let actions = &mut transform.actions.iter().map(|action| usize::from(*action));
        ensure(is_permutation(actions, spec.n_actions()), || broken("actions"))?;
        ensure(transform.classes.len() == spec.n_peers(), || broken("classes of every slot"))?;
        for (classes, n_classes) in transform.classes.iter().zip(pool.n_classes()) {
            ensure(is_permutation(&mut classes.iter().copied(), *n_classes), || broken("classes"))?;
        }
    }
    play_everywhere(game, seed, |encounter, step| {
        let mut observation = vec![0.0; spec.observation_size];
        if step.is_some() {
            return Ok(());
        }
        game.observe(encounter.state(), Seat::EGO, &mut observation);
        let transformed = |index: usize| {
            let mut transformed = Vec::new();
            symmetries.transforms[index].transform_observation(&observation, &mut transformed);
            transformed
        };
        ensure(transformed(0) == observation, || "transform 0 is not the identity".to_owned())?;
        let canonical = symmetries.canonical(&observation);
        ensure(symmetries.canonical(&transformed(canonical)) == 0, || {
            format!("the observation under transform {canonical} is not in the canonical frame")
        })
    })
}

fn pairs<T>(items: &[T]) -> impl Iterator<Item = (&T, &T)> {
    items.iter().enumerate().flat_map(|(index, one)| items[..index].iter().map(move |other| (one, other)))
}

/// Plays a random ego against every tuple. `inspect` is called before each decision, and after it with the peers' actions
/// and the boundary.
fn play_everywhere<G: Game>(
    game: &G,
    seed: Seed,
    mut inspect: impl FnMut(&Encounter<G>, Option<(&[Action], Boundary)>) -> Result<(), String>,
) -> Result<(), String> {
    let pool = game.pool();
    for (index, tuple) in pool.all().enumerate() {
        let encounter_seed = seed.child("contract", &[index as u64]);
        let mut ego_rng = encounter_seed.stream("ego");
        let mut encounter = Encounter::<G>::begin(game, &tuple.specs, N_EPISODES, encounter_seed);
        let mut peer_actions = vec![NO_ACTION; game.spec().n_peers()];
        loop {
            inspect(&encounter, None)?;
            let action = ego_rng.below(game.spec().n_actions() as u32) as Action;
            let buffers = PeerStepBuffers { observations: &mut [], actions: &mut peer_actions };
            let step = encounter.step(game, action, buffers);
            inspect(&encounter, Some((&peer_actions, step.boundary)))?;
            match step.boundary {
                Boundary::WithinEpisode => {}
                Boundary::EpisodeEnd => encounter.next_episode(game),
                Boundary::EncounterEnd => break,
            }
        }
    }
    Ok(())
}

fn observations_are_complete<G: Game>(game: &G, seed: Seed) -> Result<(), String> {
    let mut observation = vec![0.0; game.spec().observation_size];
    play_everywhere(game, seed, |encounter, _| {
        for seat in (0..game.spec().n_seats()).map(Seat) {
            for observe in [G::observe, G::observe_everything] {
                observation.fill(f32::NAN);
                observe(game, encounter.state(), seat, &mut observation);
                ensure(observation.iter().all(|value| value.is_finite()), || {
                    let place = observation.iter().position(|value| !value.is_finite());
                    format!("{seat:?}: entry {place:?} is not finite in {:?}", encounter.state())
                })?;
            }
        }
        Ok(())
    })
}

fn peers_are_legal<G: Game>(game: &G, seed: Seed) -> Result<(), String> {
    let pool = game.pool();
    let mut tuples = pool.all();
    let mut current: Option<&PeerTuple<SpecOf<G>>> = None;
    let mut is_new = true;
    play_everywhere(game, seed, |encounter, step| {
        if is_new {
            current = tuples.next();
        }
        let specs = &current.expect("as many encounters as tuples").specs;
        is_new = matches!(step, Some((_, Boundary::EncounterEnd)));
        for (slot, (peer, spec)) in encounter.peers().iter().zip(specs).enumerate() {
            ensure(peer.spec() == spec, || format!("peer {slot} was {spec:?} and became {:?}", peer.spec()))?;
        }
        let (actions, _) = step.unwrap_or((&[], Boundary::WithinEpisode));
        for (slot, action) in actions.iter().enumerate() {
            let is_legal = *action == NO_ACTION || usize::from(*action) < game.spec().n_actions();
            ensure(is_legal, || format!("peer {slot} chose action {action}"))?;
        }
        Ok(())
    })
}

fn states_round_trip<G: Game>(game: &G, seed: Seed) -> Result<(), String> {
    play_everywhere(game, seed, |encounter, _| {
        let state = encounter.state();
        game.check_state(state).map_err(|error| error.to_string())?;
        ensure(!game.render(state).trim().is_empty(), || format!("the text of {state:?} is empty"))?;
        let text = serde_json::to_string(state).map_err(|error| error.to_string())?;
        let copy: G::State = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        ensure(copy == *state, || format!("written as {text}, read back as {copy:?}"))?;
        let text = serde_json::to_string(encounter).map_err(|error| error.to_string())?;
        serde_json::from_str::<Encounter<G>>(&text).map(drop).map_err(|error| error.to_string())
    })
}

fn episodes_end_in_time<G: Game>(game: &G, seed: Seed) -> Result<(), String> {
    let mut n_steps = 0;
    let mut n_episodes = 0;
    play_everywhere(game, seed, |encounter, step| {
        let Some((_, boundary)) = step else { return Ok(()) };
        n_steps += 1;
        ensure(n_steps <= game.spec().horizon_steps, || format!("an episode took {n_steps} decisions"))?;
        let is_over = game.acting_seats(encounter.state()).is_empty();
        ensure(is_over == (boundary != Boundary::WithinEpisode), || {
            format!("acting seats are {:?} at {boundary:?}", game.acting_seats(encounter.state()))
        })?;
        if boundary != Boundary::WithinEpisode {
            n_episodes += 1;
            n_steps = 0;
            ensure((n_episodes == N_EPISODES) == (boundary == Boundary::EncounterEnd), || {
                format!("{boundary:?} after {n_episodes} of {N_EPISODES} episodes")
            })?;
            n_episodes %= N_EPISODES;
        }
        Ok(())
    })
}

fn same_seed_same_play<G: Game>(game: &G, seed: Seed) -> Result<(), String> {
    let pool = game.pool();
    let n_lanes = pool.train().len();
    let mut steps = StepBuffers::new(game.spec(), n_lanes, PeerObservationMode::Recorded);
    let mut arena = Arena::<G>::new(game.clone(), n_lanes);
    let mut alone: Vec<Encounter<G>> = Vec::new();
    let size = game.spec().observation_size;
    for (lane, tuple) in pool.train().iter().enumerate() {
        let encounter_seed = seed.child("contract", &[lane as u64]);
        arena.begin(lane, &tuple.specs, N_EPISODES, encounter_seed, steps.observation_mut(lane));
        alone.push(Encounter::begin(game, &tuple.specs, N_EPISODES, encounter_seed));
    }
    let mut ego_rng = seed.stream("ego");
    let mut actions = vec![0; n_lanes];
    let mut seen = vec![0.0; size];
    let mut peer_observations = vec![0.0; size * game.spec().n_peers()];
    let mut peer_actions = vec![NO_ACTION; game.spec().n_peers()];
    while arena.idle().contains(&false) {
        let was_idle = arena.idle().to_vec();
        for action in &mut actions {
            *action = ego_rng.below(game.spec().n_actions() as u32) as Action;
        }
        arena.step(&actions, &mut steps.batch());
        for (lane, encounter) in alone.iter_mut().enumerate().filter(|(lane, _)| !was_idle[*lane]) {
            let buffers =
                PeerStepBuffers { observations: &mut peer_observations, actions: &mut peer_actions };
            let step = encounter.step(game, actions[lane], buffers);
            let mut terminal_agrees = true;
            if step.boundary != Boundary::WithinEpisode {
                game.observe(encounter.state(), Seat::EGO, &mut seen);
                terminal_agrees = seen == steps.terminal_observations[lane * size..][..size];
            }
            if step.boundary == Boundary::EpisodeEnd {
                encounter.next_episode(game);
            }
            game.observe(encounter.state(), Seat::EGO, &mut seen);
            let observation_agrees =
                step.boundary == Boundary::EncounterEnd || seen == steps.observations[lane * size..][..size];
            let n_peers = peer_actions.len();
            let agrees = terminal_agrees
                && observation_agrees
                && steps.task_rewards[lane] == step.task_reward as f32
                && steps.boundaries[lane] == step.boundary
                && steps.endings[lane] == step.ending
                && steps.keypoints_visited[lane] == step.keypoint_visited
                && steps.peer_actions[lane * n_peers..][..n_peers] == peer_actions
                && steps.peer_observations[lane * n_peers * size..][..n_peers * size] == peer_observations;
            ensure(agrees, || format!("lane {lane} and the same encounter alone differ: {step:?}"))?;
        }
    }
    Ok(())
}

fn references_play<G: Game>(game: &G, seed: Seed) -> Result<(), String> {
    let pool = game.pool();
    for (name, reference) in game.references() {
        let specs = &pool.test()[0].specs;
        let outcomes = play_encounter(game, &reference, specs, N_EPISODES, seed)
            .map_err(|error| format!("{name}: {error}"))?;
        ensure(outcomes.len() == N_EPISODES, || format!("{name} played {} episodes", outcomes.len()))?;
    }
    Ok(())
}
