//! Embedding and belief together: the belief moves to the embedding of the peer.

use pace_games::{Preset, Seed, find_game};
use serde_json::Map;

use super::belief::{Belief, BeliefBuffers, update};
use super::embedding::Embedding;
use super::embedding_stage::EmbeddingStage;
use super::{fill_normal, keys_of};
use crate::network::NetworkDims;
use crate::policy::Policy;
use crate::preset::paper_keys;
use crate::train::IterationContext;

#[test]
fn the_belief_moves_to_the_current_peer() {
    let game = find_game("kuhn-poker").and_then(|entry| entry.open(Preset::Paper, &Map::new()));
    let game = game.expect("the game");
    let mut config = paper_keys("kuhn-poker", "gscu");
    let keys = config.gscu.as_mut().expect("keys");
    (keys.embedding_width, keys.embedding_encounters_per_tuple) = (32, 4);
    (keys.embedding_epochs, keys.embedding_batch, keys.embedding_rate) = (30, 64, 5e-3);
    let embedding = Embedding::new(NetworkDims::of(game.spec()), 40, keys);
    let ego = Policy::scripted(&*game, "random").expect("every game has it");
    // A peer that hardly ever bluffs and never calls, and one that does both.
    let tuples = [13, 12];
    let weights = embedding.initialise(Seed::new(1));
    let mut stage = EmbeddingStage::new(&*game, &embedding, weights, &config, &tuples, &ego, 1);
    let at = IterationContext { game: &*game, config: &config, seed: 1, iteration: 0, steps: 0 };
    stage.collect_samples(&at).expect("a distribution");
    let samples = stage.samples.clone();
    stage.learn(&at, keys_of(&config)).expect("finite numbers");
    let distributions = stage.distributions().to_vec();
    let keys = super::GscuConfig { belief_steps: 100, belief_rate: 0.02, ..keys_of(&config).clone() };
    let squared_distance = |mean: &[f32], tuple: usize| {
        let center = &distributions[tuple * 4..][..2];
        mean.iter().zip(center).map(|(one, other)| (one - other).powi(2)).sum::<f32>()
    };
    for (tuple, other) in [(tuples[0], tuples[1]), (tuples[1], tuples[0])] {
        let mut belief = Belief::new(2);
        let mut rng = Seed::new(7).stream("noise");
        for row in (0..samples.len()).filter(|row| usize::from(samples.tuples[*row]) == tuple) {
            belief.window.observations.extend_from_slice(&samples.observations[row * 13..][..13]);
            belief.window.actions.push(samples.actions[row]);
            if belief.window.actions.len() == 40 {
                let to_update = &mut [(&mut belief, &mut rng)];
                update(&embedding, &stage.parameters, &keys, to_update, &mut BeliefBuffers::default());
            }
        }
        let [near, far] = [tuple, other].map(|tuple| squared_distance(belief.mean(), tuple));
        assert!(near < 0.5 * far, "{tuple}: {near} from its own, {far} from the other: {:?}", belief.mean());
    }
}

#[test]
fn normal_samples_have_the_right_moments() {
    let mut values = vec![0.0; 40_001];
    fill_normal(&mut Seed::new(1).stream("noise"), &mut values);
    let moment =
        |power: i32| values.iter().map(|value| f64::from(*value).powi(power)).sum::<f64>() / 40_001.0;
    assert!(moment(1).abs() < 0.02 && (moment(2) - 1.0).abs() < 0.03 && (moment(4) - 3.0).abs() < 0.2);
    // Consecutive numbers are not correlated.
    let correlation = values.windows(2).map(|pair| f64::from(pair[0] * pair[1])).sum::<f64>() / 40_000.0;
    assert!(correlation.abs() < 0.02, "{correlation}");
}
