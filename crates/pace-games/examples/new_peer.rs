//! cargo run --release -p pace-games --example new_peer
//!
//! A new peer for an existing game: a Kuhn poker player that stops bluffing after three bluffs.

use pace_games::kuhn_poker::{BET, Card, Hand, KuhnConfig, KuhnPoker, KuhnSpec, PASS, Stage};
use pace_games::{
    Action, Arena, Game, Peer, PeerObservationMode, PeerSpec, Preset, PresetConfig, Seat, Seed, StepBuffers,
    Stream,
};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Faint {
    brave: KuhnSpec,
}

impl PeerSpec for Faint {
    fn describe(&self) -> String {
        format!("{}; stops bluffing after three bluffs", self.brave.describe())
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct FaintHeart {
    spec: Faint,
    n_bluffs: usize,
}

impl Peer<KuhnPoker> for FaintHeart {
    type Spec = Faint;

    fn new(_game: &KuhnPoker, spec: &Faint) -> FaintHeart {
        FaintHeart { spec: spec.clone(), n_bluffs: 0 }
    }

    fn spec(&self) -> &Faint {
        &self.spec
    }

    // A memory that lasts for one episode would be cleared here; the memory of this peer lasts for the encounter.
    fn begin_episode(&mut self, _game: &KuhnPoker) {}

    fn act(&mut self, _game: &KuhnPoker, hand: &Hand, _seat: Seat, rng: &mut Stream) -> Action {
        let is_bluff = hand.stage == Stage::PeerFacesCheck && hand.peer_card == Card::J;
        let bets = rng.chance(self.spec.brave.bet_probability(hand.stage, hand.peer_card));
        if is_bluff && (self.n_bluffs >= 3 || !bets) {
            return PASS;
        }
        self.n_bluffs += usize::from(is_bluff);
        if bets { BET } else { PASS }
    }
}

#[allow(clippy::print_stdout)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let game = KuhnPoker::new(KuhnConfig::preset(Preset::Paper))?;
    let spec = Faint { brave: KuhnSpec { xi: 0.9, eta: 0.5 } };
    println!("{}", spec.describe());
    let n_lanes = 1000;
    let mut steps = StepBuffers::new(game.spec(), n_lanes, PeerObservationMode::Skipped);
    let mut arena = Arena::<KuhnPoker, FaintHeart>::new(game, n_lanes);
    for lane in 0..n_lanes {
        let seed = Seed::new(1).child("encounter", &[lane as u64]);
        arena.begin(lane, std::slice::from_ref(&spec), 20, seed, steps.observation_mut(lane));
    }
    // Counts the peer's bets in each hand against an ego that always passes.
    let mut bets = [0u32; 20];
    let mut hand = vec![0; n_lanes];
    while arena.idle().contains(&false) {
        let was_idle = arena.idle().to_vec();
        arena.step(&vec![PASS; n_lanes], &mut steps.batch());
        for lane in (0..n_lanes).filter(|lane| !was_idle[*lane]) {
            bets[hand[lane]] += u32::from(steps.peer_actions[lane] == BET);
            hand[lane] += usize::from(steps.endings[lane].is_some());
        }
    }
    println!("bets in 1000 first hands: {}, in 1000 twentieth hands: {}", bets[0], bets[19]);
    Ok(())
}
