//! Sessions with people: they can play in any peer's seat, and see no more than this seat.

use std::collections::BTreeMap;

use pace_games::{
    Action, AgentSession, AnyGame, GAMES, Moment, NO_ACTION, NO_ACTIONS, Preset, Progress, Seat, SeatSet,
    Seed, Split, Viewpoint,
};
use serde_json::Value;

fn games() -> impl Iterator<Item = Box<dyn AnyGame>> {
    let presets =
        GAMES.iter().flat_map(|entry| [Preset::Paper, Preset::Reference].map(|preset| (entry, preset)));
    presets.map(|(entry, preset)| entry.open(preset, &serde_json::Map::new()).expect("presets are valid"))
}

/// Starts a session of a reference agent with people.
fn begin(game: &dyn AnyGame, ego: &str, people: &[Seat], n_episodes: usize, seed: Seed) -> AgentSession {
    let encounter = game.encounter(Split::Test, 0, people, n_episodes, seed).expect("a tuple");
    let mut ego = game.uninformed_reference(ego).expect("an uninformed reference agent");
    ego.begin_encounter();
    AgentSession::begin(encounter, ego, seed).expect("a distribution")
}

/// Plays a session to its end with the actions of `person`, and calls `inspect` with every moment. Returns the number of moves.
fn play(
    session: &mut AgentSession,
    person: &mut dyn FnMut() -> Action,
    inspect: &mut dyn FnMut(Moment<'_>),
) -> usize {
    let (mut people, mut n_moves) = (NO_ACTIONS, 0);
    inspect(session.moment());
    loop {
        match session.advance(&people).expect("distributions") {
            Progress::Asked(seats) => seats.iter().for_each(|seat| people[seat.0] = person()),
            Progress::Moved => {
                people = NO_ACTIONS;
                n_moves += usize::from(session.moment().last_move.is_some());
                inspect(session.moment());
            }
            Progress::Over => return n_moves,
        }
    }
}

#[test]
fn person_who_acts_like_the_scripted_peer_changes_nothing() {
    for game in games() {
        for slot in 0..game.spec().n_peers() {
            let (seed, n_episodes, seat) = (Seed::new(3), 4, Seat::of_peer(slot));
            // Everything that a session shows, except the seats that it asks.
            let shown = |moment: Moment<'_>| {
                let step = moment.step.map(|step| {
                    (
                        step.ego_action,
                        step.peer_actions.to_vec(),
                        step.outcome.task_reward,
                        step.outcome.boundary,
                    )
                });
                let numbers = (moment.episode, moment.n_moves, moment.n_steps, moment.task_return);
                let decision = moment.decision.map(|decision| decision.action);
                (
                    numbers,
                    moment.observation.to_vec(),
                    step,
                    decision,
                    moment.ending,
                    moment.encounter.render(),
                )
            };
            let (mut alone, mut with_person) = (Vec::new(), Vec::new());
            let mut of_peer = Vec::new();
            let mut scripted = begin(&*game, "bayes", &[], n_episodes, seed);
            play(&mut scripted, &mut || panic!("the session has no people"), &mut |moment| {
                let action = moment.last_move.map(|played| played.actions[seat.0]);
                of_peer.extend(action.filter(|action| *action != NO_ACTION));
                alone.push(shown(moment));
            });
            let mut of_peer = of_peer.into_iter();
            let mut played = begin(&*game, "bayes", &[seat], n_episodes, seed);
            let mut person = || of_peer.next().expect("as many moves as the scripted peer");
            play(&mut played, &mut person, &mut |moment| with_person.push(shown(moment)));
            assert!(alone == with_person, "{} slot {slot}", game.spec().id);
            assert_eq!(scripted.outcomes(), played.outcomes());
            assert_eq!(scripted.outcomes().len(), n_episodes);
        }
    }
}

#[test]
fn a_session_waits_for_people_and_ends_once() {
    for game in games() {
        let (seed, seat) = (Seed::new(5), Seat::of_peer(0));
        let mut session = begin(&*game, "random", &[seat], 1, seed);
        let asked = Progress::Asked(SeatSet::only(seat));
        while session.advance(&NO_ACTIONS).expect("a distribution") != asked {}
        let before = (session.moment().n_moves, session.encounter().render());
        assert_eq!(session.advance(&NO_ACTIONS), Ok(asked));
        assert_eq!((session.moment().n_moves, session.encounter().render()), before);
        play(&mut session, &mut || 0, &mut |_| {});
        let outcomes = session.outcomes().to_vec();
        assert!(session.is_over() && session.moment().ending.is_some());
        assert_eq!(session.advance(&NO_ACTIONS), Ok(Progress::Over));
        assert_eq!(session.outcomes(), outcomes);
    }
}

#[test]
fn every_reference_plays_with_random_people() {
    for game in games() {
        let n_actions = game.spec().n_actions() as u32;
        for name in game.uninformed_names() {
            for slot in 0..game.spec().n_peers() {
                for number in 0..4 {
                    let seed = Seed::new(number).child(name, &[slot as u64]);
                    let seat = Seat::of_peer(slot);
                    let n_episodes = game.spec().episodes_per_encounter.min(12);
                    let mut session = begin(&*game, name, &[seat], n_episodes, seed);
                    let mut rng = seed.stream("person");
                    // Half of the people choose a new action in every move, the others repeat their action for a while.
                    let mut action = 0;
                    let mut person = || {
                        if number % 2 == 0 || rng.chance(0.3) {
                            action = rng.below(n_actions) as Action;
                        }
                        action
                    };
                    assert!(play(&mut session, &mut person, &mut |_| {}) >= n_episodes);
                    assert!(!session.encounter().behaviour_summary(seat).lines.is_empty());
                    for beliefs in session.moment().beliefs() {
                        let total: f32 = beliefs.iter().map(|belief| belief.probability).sum();
                        assert!((total - 1.0).abs() < 1e-3, "{} {name}: {total}", game.spec().id);
                    }
                }
            }
        }
    }
}

#[test]
fn views_show_exactly_what_observations_show() {
    for game in games() {
        let spec = game.spec();
        let (seat, seed) = (Seat::of_peer(0), Seed::new(11));
        let n_episodes = 5;
        let mut seen: Vec<(Vec<u32>, String)> = Vec::new();
        for number in 0..6 {
            let seed = seed.child("session", &[number]);
            let mut session = begin(&*game, "random", &[seat], n_episodes, seed);
            let mut rng = seed.stream("person");
            let mut person = || rng.below(spec.n_actions() as u32) as Action;
            play(&mut session, &mut person, &mut |moment| {
                let mut observation = vec![0.0; spec.observation_size];
                moment.encounter.observe(seat, &mut observation);
                seen.push((
                    observation.iter().map(|v| v.to_bits()).collect(),
                    moment.encounter.view(Viewpoint::Seat(seat)).to_string(),
                ));
                let all = moment.encounter.view(Viewpoint::Omniscient);
                assert!(!all.to_string().contains("null") || spec.id != "kuhn-poker", "{all}");
            });
        }
        assert!(seen.len() > 20);
        if spec.id == "kuhn-poker" {
            // The ego's card is hidden before a showdown.
            for (observation, view) in &seen {
                let is_open = observation[10..].iter().any(|value| *value != 0);
                let view: Value = serde_json::from_str(view).expect("a view");
                assert_eq!(view["ego"]["card"].is_null(), !is_open, "{view}");
                assert!(!view["peer"]["card"].is_null());
            }
        }
        if spec.id == "overcooked" {
            for (observation, view) in &seen {
                let view: Value = serde_json::from_str(view).expect("a view");
                let sees_other = f32::from_bits(observation[5]) == 1.0;
                assert_eq!(!view["cooks"][0].is_null(), sees_other, "{view}");
                let n_seen = (0..12).filter(|object| f32::from_bits(observation[8 + 3 * object]) == 1.0);
                let n_movable = n_seen.filter(|object| *object > 1).count();
                assert_eq!(view["things"].as_array().map(Vec::len), Some(n_movable), "{view}");
            }
        }
        if spec.id == "predator-prey" {
            for (observation, view) in &seen {
                let view: Value = serde_json::from_str(view).expect("a view");
                let agents = view["agents"].as_array().expect("agents");
                let others = agents.iter().enumerate().filter(|(agent, _)| *agent != seat.0);
                for (place, (_, agent)) in others.enumerate() {
                    assert_eq!(!agent.is_null(), f32::from_bits(observation[22 + place]) == 1.0, "{view}");
                }
            }
        }
    }
}

#[test]
fn privileged_and_unknown_references_are_refused() {
    for game in games() {
        assert!(!game.uninformed_names().contains(&"oracle"));
        assert!(game.uninformed_reference("oracle").is_err() && game.uninformed_reference("none").is_err());
    }
}

#[test]
fn kinds_as_data_and_as_text_make_the_same_distinctions() {
    for game in games() {
        let mut known: BTreeMap<(usize, String), Value> = BTreeMap::new();
        for tuple in [Split::Train, Split::Test].into_iter().flat_map(|split| game.pool(split).tuples) {
            for (slot, (kind, data)) in tuple.kinds.iter().zip(&tuple.kind_data).enumerate() {
                let before = known.entry((slot, kind.clone())).or_insert_with(|| data.clone());
                // The text of Kuhn Poker's kinds has only three digits.
                assert!(before == data || game.spec().id == "kuhn-poker", "{kind}: {before} and {data}");
                assert!(data.is_object(), "{kind}: {data}");
            }
        }
        for ((slot, kind), data) in &known {
            let alike = known.iter().filter(|((other, _), found)| other == slot && *found == data).count();
            assert_eq!(alike, 1, "{kind}: {data}");
        }
    }
}
