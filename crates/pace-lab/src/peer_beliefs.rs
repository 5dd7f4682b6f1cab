//! What an agent takes its peers for, in words: its posterior over training classes, with classes of one kind together.

use pace_games::{AnyGame, Inference, Split, TupleListing};

/// A moment of an encounter: the episode and the decisions before it in that episode, both from 0.
pub type EpisodeStep = (usize, usize);

/// The agent's mind about every peer at the table.
pub struct PeerBeliefs {
    slots: Vec<PeerBelief>,
}

/// The agent's mind about one peer.
pub struct PeerBelief {
    /// What the peer is.
    pub role: &'static str,
    kinds: Vec<String>,
    kind_of_class: Vec<usize>,
    /// The traits of each class.
    traits: Vec<Vec<f32>>,
    /// The peer's own kind, where the agent was trained with some of it.
    truth: Option<usize>,
    /// The kinds with their probabilities, the most likely first; empty before the first thought.
    ranking: Vec<(usize, f32)>,
    /// Since when the first of them has been first.
    since: EpisodeStep,
}

/// The most likely kind of a peer.
#[derive(Clone, Debug)]
pub struct Guess {
    /// In words.
    pub kind: String,
    /// The agent's probability.
    pub probability: f32,
    /// Whether it is right, where a guess can be.
    pub is_right: Option<bool>,
}

impl PeerBeliefs {
    /// A mind without a thought, about the peers that are met.
    pub fn new(game: &dyn AnyGame, met: &TupleListing) -> PeerBeliefs {
        let pool = game.pool(Split::Train);
        let slots = game.spec().peer_roles.iter().enumerate().map(|(slot, role)| {
            let mut kinds: Vec<String> = Vec::new();
            let kind_of_class = (0..pool.n_classes[slot])
                .map(|class| {
                    let peer = pool.tuples.iter().find(|tuple| tuple.classes[slot] == class);
                    let kind = peer.map_or_else(|| format!("class {class}"), |peer| peer.kinds[slot].clone());
                    kinds.iter().position(|known| *known == kind).unwrap_or_else(|| {
                        kinds.push(kind);
                        kinds.len() - 1
                    })
                })
                .collect();
            let truth = kinds.iter().position(|kind| *kind == met.kinds[slot]);
            let traits = pool.traits.get(slot).cloned().unwrap_or_default();
            PeerBelief { role, kinds, kind_of_class, traits, truth, ranking: Vec::new(), since: (0, 0) }
        });
        PeerBeliefs { slots: slots.collect() }
    }

    /// Takes in what the agent infers now.
    pub fn update(&mut self, inference: &Inference, now: EpisodeStep) {
        for (slot, posterior) in self.slots.iter_mut().zip(&inference.posteriors) {
            let mut ranking: Vec<(usize, f32)> = (0..slot.kinds.len()).map(|kind| (kind, 0.0)).collect();
            for (class, probability) in posterior.iter().enumerate() {
                ranking[slot.kind_of_class[class]].1 += probability;
            }
            ranking.sort_by(|one, other| other.1.total_cmp(&one.1));
            let first = |ranking: &[(usize, f32)]| ranking.first().map(|(kind, _)| *kind);
            if first(&ranking) != first(&slot.ranking) {
                slot.since = now;
            }
            slot.ranking = ranking;
        }
    }

    /// Peer by peer.
    pub fn slots(&self) -> &[PeerBelief] {
        &self.slots
    }

    /// When each peer was recognised, if it was.
    pub fn summary_lines(&self, episode_noun: &str) -> Vec<String> {
        let tell = |slot: &PeerBelief| {
            let guess = slot.ranked().next()?;
            let (episode, n_steps) = slot.since;
            let since = match n_steps {
                0 => format!("since {episode_noun} {} began", episode + 1),
                _ => format!("since step {n_steps} of {episode_noun} {}", episode + 1),
            };
            let (role, kind) = (slot.role, guess.kind);
            Some(match guess.is_right {
                Some(true) => format!("{role}: identified {since}"),
                Some(false) => format!("{role}: not identified; most likely {kind}, {since}"),
                None => format!("{role}: no such peer in training; most likely {kind}, {since}"),
            })
        };
        self.slots.iter().filter_map(tell).collect()
    }
}

impl PeerBelief {
    /// What the peer may be, in words, with the mean traits of the classes of that kind.
    pub fn kinds(&self) -> impl Iterator<Item = (&str, Vec<f32>)> {
        self.kinds.iter().enumerate().map(|(kind, name)| {
            let classes = self.kind_of_class.iter().zip(&self.traits).filter(|(of, _)| **of == kind);
            let rows: Vec<&Vec<f32>> = classes.map(|(_, traits)| traits).collect();
            let n_traits = rows.first().map_or(0, |row| row.len());
            let mean = |place: usize| rows.iter().map(|row| row[place]).sum::<f32>() / rows.len() as f32;
            (name.as_str(), (0..n_traits).map(mean).collect())
        })
    }

    /// Which of the kinds it is of, if of any.
    pub fn truth(&self) -> Option<usize> {
        self.truth
    }

    /// The probability of each kind, in the order of [`PeerBelief::kinds`]; none before the first thought.
    pub fn probabilities(&self) -> impl Iterator<Item = f32> {
        let mut probabilities = vec![0.0; self.ranking.len()];
        self.ranking.iter().for_each(|(kind, probability)| probabilities[*kind] = *probability);
        probabilities.into_iter()
    }

    /// What the peer may be, the most likely first.
    pub fn ranked(&self) -> impl Iterator<Item = Guess> {
        self.ranking.iter().map(|(kind, probability)| Guess {
            kind: self.kinds[*kind].clone(),
            probability: *probability,
            is_right: self.truth.map(|truth| truth == *kind),
        })
    }
}

#[cfg(test)]
mod tests {
    use pace_games::{Inference, Preset, Split, find_game};
    use serde_json::Map;

    use super::PeerBeliefs;

    fn inference(posteriors: Vec<Vec<f32>>) -> Inference {
        Inference { posteriors, ..Inference::default() }
    }

    #[test]
    fn classes_of_one_kind_count_together_and_the_last_change_of_mind_is_kept() {
        let game = find_game("overcooked").and_then(|entry| entry.open(Preset::Paper, &Map::new()));
        let game = game.expect("a game");
        // Training peers 0 and 9 want what test peer 0 wants; 4 and 13 want something else.
        let mut beliefs = PeerBeliefs::new(&*game, &game.pool(Split::Test).tuples[0]);
        assert_eq!(beliefs.slots()[0].kinds.len(), 9);
        assert!(beliefs.summary_lines("episode").is_empty());
        let posterior = |shares: &[(usize, f32)]| {
            let mut posterior = vec![0.0; 18];
            shares.iter().for_each(|(class, share)| posterior[*class] = *share);
            inference(vec![posterior])
        };
        beliefs.update(&posterior(&[(4, 0.6), (0, 0.3), (9, 0.1)]), (0, 0));
        assert_eq!(
            beliefs.summary_lines("episode"),
            ["cook: not identified; most likely Lettuce and Carrot, since episode 1 began"]
        );
        beliefs.update(&posterior(&[(4, 0.4), (0, 0.3), (9, 0.3)]), (0, 7));
        beliefs.update(&posterior(&[(4, 0.1), (0, 0.9)]), (3, 0));
        let best = beliefs.slots()[0].ranked().next().expect("a guess");
        assert_eq!(
            (&best.kind[..], best.probability, best.is_right),
            ("Potato and Broccoli", 0.9, Some(true))
        );
        assert_eq!(beliefs.summary_lines("episode"), ["cook: identified since step 7 of episode 1"]);
    }

    #[test]
    fn nobody_can_name_a_peer_of_a_kind_that_was_never_met() {
        let game = find_game("kuhn-poker").and_then(|entry| entry.open(Preset::Paper, &Map::new()));
        let game = game.expect("a game");
        let mut beliefs = PeerBeliefs::new(&*game, &game.pool(Split::Test).tuples[0]);
        beliefs.update(&inference(vec![vec![1.0 / 40.0; 40]]), (2, 1));
        assert_eq!(beliefs.slots()[0].ranked().next().expect("a guess").is_right, None);
        assert!(
            beliefs.summary_lines("hand")[0]
                .starts_with("opponent: no such peer in training; most likely bluffs J")
        );
        // An agent without an identifier has no mind about anybody.
        let mut blank = PeerBeliefs::new(&*game, &game.pool(Split::Test).tuples[0]);
        blank.update(&inference(Vec::new()), (0, 0));
        assert!(blank.summary_lines("hand").is_empty());
    }
}
