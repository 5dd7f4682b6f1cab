//! One file per figure, named by its subject: each turns a record into a chart.

pub mod adaptation;
pub mod identification;
pub mod keypoint;
pub mod training;
