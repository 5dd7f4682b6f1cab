//! Steps per second of every game on one thread: `cargo bench -p pace-games`.

use pace_games::{Action, GAMES, PeerObservationMode, Preset, Seed, Split, StepBuffers};

fn main() {
    divan::main();
}

const N_LANES: usize = 64;
const N_STEPS: usize = 256;

fn bench_game(bencher: divan::Bencher<'_, '_>, id: &str, peer_observation_mode: PeerObservationMode) {
    let entry = GAMES.iter().find(|entry| entry.id == id).expect("one of GAMES");
    let game = entry.open(Preset::Paper, &serde_json::Map::new()).expect("presets are valid");
    let (n_actions, n_episodes) = (game.spec().n_actions() as u32, game.spec().episodes_per_encounter);
    let n_tuples = game.pool(Split::Train).tuples.len();
    let mut arena = game.arena(Split::Train, N_LANES);
    let mut steps = StepBuffers::new(game.spec(), N_LANES, peer_observation_mode);
    let mut rng = Seed::new(1).stream("ego");
    let actions: Vec<Vec<Action>> =
        (0..N_STEPS).map(|_| (0..N_LANES).map(|_| rng.below(n_actions) as Action).collect()).collect();
    let mut n_encounters = 0;
    bencher.counter(divan::counter::ItemsCount::new(N_LANES * N_STEPS)).bench_local(move || {
        for joint in &actions {
            for lane in 0..N_LANES {
                if arena.idle()[lane] {
                    n_encounters += 1;
                    let seed = Seed::new(1).child("encounter", &[n_encounters]);
                    let observation = steps.observation_mut(lane);
                    arena.begin(lane, n_encounters as usize % n_tuples, n_episodes, seed, observation);
                }
            }
            arena.step(joint, &mut steps.batch());
        }
    });
}

#[divan::bench(args = GAMES.iter().map(|entry| entry.id))]
fn ego_observation(bencher: divan::Bencher<'_, '_>, id: &str) {
    bench_game(bencher, id, PeerObservationMode::Skipped);
}

#[divan::bench(args = GAMES.iter().map(|entry| entry.id))]
fn all_observations(bencher: divan::Bencher<'_, '_>, id: &str) {
    bench_game(bencher, id, PeerObservationMode::Recorded);
}
