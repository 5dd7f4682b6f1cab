//! The numerical engine: layers with explicit forward and backward passes over buffers the caller owns.
//!
//! No tape, no tensor type, no allocation in a pass. All weights of a network lie in one flat buffer, their gradients in
//! another of the same layout (`layout`), so that adding shards up, clipping and Adam are single passes. The engine
//! knows nothing of games, peers or files, and is the only crate that may hold `unsafe`, SIMD and GEMM code.
#![warn(missing_docs)]

pub mod layout;
pub mod simd;

pub mod kernels;
pub mod product;
pub mod rows;

pub mod attention;
pub mod dropout;
pub mod gru;
pub mod linear;
pub mod mlp;
pub mod norm;
pub mod positions;
mod prefix_attention;
pub mod prefix_pooling;
pub mod transformer;

pub mod gaussian;
pub mod loss;

pub mod adam;
pub mod initialise;
pub mod threads;

pub use adam::{Adam, AdamConfig};
pub use attention::{Attention, AttentionBuffers, PrefixGroup, Sequences};
pub use dropout::{Dropout, DropoutKey};
pub use gru::{Gru, GruBuffers, GruInputs};
pub use layout::{Layout, ParameterError, TensorId, TensorSpec};
pub use linear::{Activation, InputPart, Linear, WriteMode};
pub use mlp::{Mlp, MlpBuffers};
pub use norm::LayerNorm;
pub use positions::PositionEmbedding;
pub use prefix_pooling::{EmptyEpisode, PrefixPool};
pub use simd::SimdPath;
pub use transformer::{TransformerBuffers, TransformerConfig, TransformerLayer};
