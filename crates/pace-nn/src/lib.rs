//! The numerical engine: layers with explicit forward and backward passes over buffers the caller owns.
//!
//! There is no autograd tape and no tensor type, and a pass does not allocate once its buffers have grown. All weights of a
//! network lie in one flat buffer, their gradients in another of the same layout (`layout`). Summing shards, clipping and
//! Adam are therefore single passes over flat buffers. The engine knows nothing of games, peers or files. It is the only
//! crate that may contain `unsafe`, SIMD and GEMM code; `unsafe` occurs in `kernels` and `product` only.
#![warn(missing_docs)]

mod layout;
mod simd;

pub mod kernels;
pub mod product;
pub mod rows;

mod attention;
mod dropout;
mod gru;
mod linear;
mod lstm;
mod mlp;
mod norm;
mod positions;
mod prefix_attention;
mod prefix_pooling;
mod transformer;

pub mod gaussian;
pub mod loss;

mod adam;
pub mod initialise;
pub mod threads;

pub use adam::{Adam, AdamConfig};
pub use attention::{Attention, AttentionBuffers, PrefixGroup, Sequences};
pub use dropout::{Dropout, DropoutKey};
pub use gru::{Gru, GruBuffers, GruInputs};
pub use layout::{Layout, ParameterError, TensorId, TensorSpec};
pub use linear::{Activation, InputPart, Linear, WriteMode};
pub use lstm::{Lstm, LstmBuffers, WindowInputs};
pub use mlp::{Mlp, MlpBuffers};
pub use norm::LayerNorm;
pub use positions::PositionEmbedding;
pub use prefix_pooling::{EmptyEpisodeMode, PrefixPool};
pub use simd::SimdPath;
pub use transformer::{TransformerBuffers, TransformerConfig, TransformerLayer};
