//! The peers of Kuhn poker, with two parameters each, the paper's pools and the validation peers.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::KuhnPoker;
use super::rules::{BET, Card, Hand, PASS, Stage};
use crate::game::{Action, Seat};
use crate::peer::{Peer, PeerSpec};
use crate::pool::PeerPool;
use crate::seed::Stream;

/// A second player without dominated actions: J never calls, Q never bets, K always does both.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KuhnSpec {
    /// The probability that J bluffs after a check.
    pub xi: f64,
    /// The probability that Q calls a bet.
    pub eta: f64,
}

impl KuhnSpec {
    /// The probability that the peer bets or calls.
    #[inline]
    pub fn bet_probability(&self, stage: Stage, card: Card) -> f64 {
        match (stage, card) {
            (Stage::PeerFacesCheck, Card::J) => self.xi,
            (Stage::PeerFacesCheck, Card::Q) => 0.0,
            (Stage::PeerFacesBet, Card::J) => 0.0,
            (Stage::PeerFacesBet, Card::Q) => self.eta,
            (Stage::PeerFacesCheck | Stage::PeerFacesBet, Card::K) => 1.0,
            (stage, _) => panic!("the peer does not act at {stage:?}"),
        }
    }

    /// The distance to another peer in the (xi, eta) square.
    pub(crate) fn distance(&self, other: &KuhnSpec) -> f64 {
        (self.xi - other.xi).hypot(self.eta - other.eta)
    }
}

impl PeerSpec for KuhnSpec {
    fn describe(&self) -> String {
        format!("bluffs J {:.3}, calls with Q {:.3}", self.xi, self.eta)
    }

    fn behaviour_vector(&self) -> Vec<f32> {
        vec![self.xi as f32, self.eta as f32]
    }

    fn kind_data(&self) -> Value {
        json!({ "bluffs_with_jack": self.xi, "calls_with_queen": self.eta })
    }
}

/// A peer in an encounter; it has no memory.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct KuhnPeer(KuhnSpec);

impl Peer<KuhnPoker> for KuhnPeer {
    type Spec = KuhnSpec;

    fn new(_game: &KuhnPoker, spec: &KuhnSpec) -> KuhnPeer {
        KuhnPeer(*spec)
    }

    fn spec(&self) -> &KuhnSpec {
        &self.0
    }

    fn begin_episode(&mut self, _game: &KuhnPoker) {}

    #[inline]
    fn act(&mut self, _game: &KuhnPoker, hand: &Hand, _seat: Seat, rng: &mut Stream) -> Action {
        if rng.chance(self.0.bet_probability(hand.stage, hand.peer_card)) { BET } else { PASS }
    }
}

/// The authors' pools of 40 training peers and 10 test peers, with [`validation_peers`].
pub(crate) fn official_pool() -> PeerPool<KuhnSpec> {
    let specs = OFFICIAL.map(|(xi, eta)| KuhnSpec { xi, eta });
    let (train, test) = specs.split_at(40);
    PeerPool::of_single_peers(train, &validation_peers(&specs), test).expect("the pools are disjoint")
}

/// The number of validation peers.
const N_VALIDATION: usize = 24;
/// The minimum distance of a validation peer from every training and test peer, in the (xi, eta) square.
pub(crate) const MIN_DISTANCE: f64 = 0.04;

/// The first points of a low-discrepancy sequence in the (xi, eta) square (multiples of powers of the plastic number, modulo 1)
/// that are not close to an official peer.
fn validation_peers(official: &[KuhnSpec]) -> Vec<KuhnSpec> {
    let part = |index: u32, step: f64| ((f64::from(index) + 0.5) * step).fract();
    (0..)
        .map(|index| KuhnSpec {
            xi: part(index, 0.754_877_666_246_692_8),
            eta: part(index, 0.569_840_290_998_053_2),
        })
        .filter(|peer| official.iter().all(|other| peer.distance(other) >= MIN_DISTANCE))
        .take(N_VALIDATION)
        .collect()
}

/// (xi, eta) of the authors' 50 peers, training peers first.
#[rustfmt::skip]
const OFFICIAL: [(f64, f64); 50] = [
    (0.417022004702574, 0.7203244934421581),
    (0.00011437481734488664, 0.30233257263183977),
    (0.14675589081711304, 0.0923385947687978),
    (0.1862602113776709, 0.34556072704304774),
    (0.39676747423066994, 0.538816734003357),
    (0.4191945144032948, 0.6852195003967595),
    (0.20445224973151743, 0.8781174363909454),
    (0.027387593197926163, 0.6704675101784022),
    (0.41730480236712697, 0.5586898284457517),
    (0.14038693859523377, 0.1981014890848788),
    (0.8007445686755367, 0.9682615757193975),
    (0.31342417815924284, 0.6923226156693141),
    (0.8763891522960383, 0.8946066635038473),
    (0.08504421136977791, 0.03905478323288236),
    (0.1698304195645689, 0.8781425034294131),
    (0.0983468338330501, 0.42110762500505217),
    (0.9578895301505019, 0.5331652849730171),
    (0.6918771139504734, 0.31551563100606295),
    (0.6865009276815837, 0.8346256718973729),
    (0.018288277344191806, 0.7501443149449675),
    (0.9888610889064947, 0.7481656543798394),
    (0.2804439920644052, 0.7892793284514885),
    (0.10322600657764203, 0.44789352617590517),
    (0.9085955030930956, 0.2936141483736795),
    (0.28777533858634874, 0.13002857211827767),
    (0.019366957870297075, 0.678835532939891),
    (0.21162811600005904, 0.2655466593722262),
    (0.4915731592803383, 0.053362545117080384),
    (0.5741176054920131, 0.14672857490581015),
    (0.5893055369032842, 0.6997583600209312),
    (0.10233442882782584, 0.4140559878195683),
    (0.6944001577277451, 0.41417926952690265),
    (0.04995345894608716, 0.5358964059155116),
    (0.6637946452197888, 0.5148891120583086),
    (0.9445947559908133, 0.5865550405019929),
    (0.9034019152878835, 0.13747470414623753),
    (0.13927634725075855, 0.8073912887095238),
    (0.3976768369855336, 0.16535419711693278),
    (0.9275085803960339, 0.34776585974550656),
    (0.7508121031361555, 0.7259979853504515),
    (0.8833060912058098, 0.6236722070556089),
    (0.7509424340273372, 0.34889834197784253),
    (0.2699278917650261, 0.8958862181960668),
    (0.4280911898712949, 0.9648400471483856),
    (0.6634414978184481, 0.6216957202091218),
    (0.11474597295337519, 0.9494892587070712),
    (0.4499121334799405, 0.5783896143871318),
    (0.40813680276128117, 0.2370269802430277),
    (0.9033795205622538, 0.5736794866722859),
    (0.00287032703115897, 0.6171449136207239),
];
