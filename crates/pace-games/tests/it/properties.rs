//! Properties of random play of every game.

use pace_games::{
    Action, Boundary, GAMES, NO_ACTION, NO_ACTIONS, PeerObservationMode, PeerStepBuffers, Preset, Seat, Seed,
    Split, StepBuffers,
};
use proptest::prelude::{ProptestConfig, any, prop_assert, prop_assert_eq, proptest};

/// Plays `tuple` in lane `lane` of an arena whose other lanes have other tuples. Returns everything that the lane reported.
fn play(game: usize, preset: Preset, lane: usize, n_lanes: usize, tuple: usize, seed: u64) -> Vec<Report> {
    let game = GAMES[game].open(preset, &serde_json::Map::new()).expect("presets are valid");
    let n_tuples = game.pool(Split::Train).tuples.len();
    let mut arena = game.arena(Split::Train, n_lanes);
    let mut steps = StepBuffers::new(game.spec(), n_lanes, PeerObservationMode::Recorded);
    let n_episodes = 2;
    for other in 0..n_lanes {
        let seed = Seed::new(seed).child("other", &[other as u64]);
        arena.begin(other, (tuple + other) % n_tuples, n_episodes, seed, steps.observation_mut(other));
    }
    arena.begin(lane, tuple % n_tuples, n_episodes, Seed::new(seed), steps.observation_mut(lane));
    let mut rng = Seed::new(seed).stream("ego");
    let mut reports = vec![report(&steps, lane, n_lanes)];
    while !arena.idle()[lane] {
        let action = rng.below(game.spec().n_actions() as u32) as Action;
        arena.step(&vec![action; n_lanes], &mut steps.batch());
        reports.push(report(&steps, lane, n_lanes));
    }
    reports
}

#[derive(Debug, PartialEq)]
struct Report {
    observation: Vec<f32>,
    terminal_observation: Vec<f32>,
    peer_observations: Vec<f32>,
    peer_actions: Vec<Action>,
    task_reward: f32,
    facts: String,
}

fn report(block: &StepBuffers, lane: usize, n_lanes: usize) -> Report {
    let part = |values: &[f32]| {
        let size = values.len() / n_lanes;
        values[lane * size..][..size].to_vec()
    };
    let n_peers = block.peer_actions.len() / n_lanes;
    Report {
        observation: part(&block.observations),
        terminal_observation: part(&block.terminal_observations),
        peer_observations: part(&block.peer_observations),
        peer_actions: block.peer_actions[lane * n_peers..][..n_peers].to_vec(),
        task_reward: block.task_rewards[lane],
        facts: format!(
            "{:?} {:?} {}",
            block.boundaries[lane], block.endings[lane], block.keypoints_visited[lane]
        ),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// An encounter does not depend on its lane or on the other lanes.
    #[test]
    fn observations_depend_on_peers_and_seed_alone(
        game in 0..GAMES.len(),
        is_paper in any::<bool>(),
        lane in 0usize..4,
        other_lane in 0usize..7,
        tuple in 0usize..64,
        seed in any::<u64>(),
    ) {
        let preset = if is_paper { Preset::Paper } else { Preset::Reference };
        let here = play(game, preset, lane, 4, tuple, seed);
        let there = play(game, preset, other_lane, 7, tuple, seed);
        prop_assert_eq!(here, there);
    }

    /// An encounter that is played move by move is equal to that of a lane.
    #[test]
    fn encounter_plays_like_a_lane(game in 0..GAMES.len(), tuple in 0usize..64, seed in any::<u64>()) {
        let in_lane = play(game, Preset::Paper, 0, 1, tuple, seed);
        let game = GAMES[game].open(Preset::Paper, &serde_json::Map::new()).expect("presets are valid");
        let (spec, tuple) = (game.spec(), tuple % game.n_tuples(Split::Train));
        let mut encounter = game.encounter(Split::Train, tuple, &[], 2, Seed::new(seed)).expect("a tuple");
        let mut rng = Seed::new(seed).stream("ego");
        let mut observation = vec![0.0; spec.observation_size];
        encounter.observe(Seat::EGO, &mut observation);
        prop_assert_eq!(&observation, &in_lane[0].observation);
        let mut peer_observations = vec![0.0; spec.n_peers() * spec.observation_size];
        let mut peer_actions = vec![NO_ACTION; spec.n_peers()];
        for report in &in_lane[1..] {
            let mut chosen = NO_ACTIONS;
            chosen[Seat::EGO.0] = rng.below(spec.n_actions() as u32) as Action;
            let mut peers =
                PeerStepBuffers { observations: &mut peer_observations, actions: &mut peer_actions };
            peers.clear();
            let (mut task_reward, mut keypoint_visited) = (0.0, false);
            let played = loop {
                let played = encounter.play(&chosen, &mut peers);
                task_reward += played.outcome.task_reward;
                keypoint_visited |= played.outcome.keypoint_visited;
                let is_over = played.boundary != Boundary::WithinEpisode;
                prop_assert!(!is_over || encounter.seats_to_ask().is_empty());
                if is_over || encounter.seats_to_ask().contains(Seat::EGO) {
                    break played;
                }
            };
            prop_assert_eq!(&peer_actions, &report.peer_actions);
            prop_assert_eq!(&peer_observations, &report.peer_observations);
            prop_assert_eq!(task_reward as f32, report.task_reward);
            let facts = format!("{:?} {:?} {keypoint_visited}", played.boundary, played.outcome.ending);
            prop_assert_eq!(&facts, &report.facts);
            prop_assert!(!encounter.render().is_empty());
            encounter.observe(Seat::EGO, &mut observation);
            if played.boundary != Boundary::WithinEpisode {
                prop_assert_eq!(&observation, &report.terminal_observation);
            }
            if played.boundary == Boundary::EpisodeEnd {
                encounter.next_episode();
                encounter.observe(Seat::EGO, &mut observation);
            }
            if played.boundary != Boundary::EncounterEnd {
                prop_assert_eq!(&observation, &report.observation);
            }
        }
    }

    /// Different seeds give different play.
    #[test]
    fn another_seed_gives_another_play(game in 0..GAMES.len(), tuple in 0usize..64, seed in any::<u64>()) {
        let plays: Vec<_> = (0..8).map(|shift| play(game, Preset::Paper, 0, 1, tuple, seed ^ shift)).collect();
        prop_assert!(plays.iter().any(|other| other != &plays[0]));
    }
}
