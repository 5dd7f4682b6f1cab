//! Checks with a counting allocator that a step of an arena allocates nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use pace_games::{Action, GAMES, PeerObservationMode, Preset, Seed, Split, StepBuffers};

struct Counting;

thread_local! {
    /// Per thread, since the tests of this binary run in parallel.
    static N_ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator unchanged; counting it is the only addition.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        N_ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_step_allocates_nothing() {
    for entry in GAMES {
        for preset in Preset::RULES {
            let game = entry.open(preset, &serde_json::Map::new()).expect("presets are valid");
            let n_lanes = game.pool(Split::Train).tuples.len();
            let mut arena = game.arena(Split::Train, n_lanes);
            let mut steps = StepBuffers::new(game.spec(), n_lanes, PeerObservationMode::Recorded);
            let seed = Seed::new(3);
            let mut rng = seed.stream("ego");
            for lane in 0..n_lanes {
                let seed = seed.child("encounter", &[lane as u64]);
                let n_episodes = game.spec().episodes_per_encounter;
                arena.begin(lane, lane, n_episodes, seed, steps.observation_mut(lane));
            }
            let mut actions = vec![0; n_lanes];
            let mut n_steps = 0;
            while arena.idle().contains(&false) {
                for action in &mut actions {
                    *action = rng.below(game.spec().n_actions() as u32) as Action;
                }
                let before = N_ALLOCATIONS.with(Cell::get);
                arena.step(&actions, &mut steps.batch());
                assert_eq!(N_ALLOCATIONS.with(Cell::get), before, "{} step {n_steps}", entry.id);
                n_steps += 1;
            }
            assert!(n_steps >= game.spec().episodes_per_encounter);
        }
    }
}
