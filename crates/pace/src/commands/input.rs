//! Standard input as a leash: a process of `pace reproduce` stops when its input ends, by wish or because the lab died.

use std::io::Read;

use clap::Args;
use pace_lab::{StopFlag, StopSignal};

#[derive(Debug, Args)]
pub struct InputArgs {
    /// Stop, as if asked by SIGTERM, when standard input ends.
    #[arg(long, hide = true)]
    stop_with_input: bool,
}

impl InputArgs {
    /// Asks the run to stop when the input ends.
    pub fn watch(&self, stop: &StopFlag) {
        let stop = stop.clone();
        self.at_end(move || stop.request(StopSignal::Terminate));
    }

    /// Leaves when the input ends, for a command that has nothing to save on the way.
    pub fn exit_with(&self) {
        self.at_end(|| std::process::exit(i32::from(crate::STOPPED)));
    }

    fn at_end(&self, act: impl FnOnce() + Send + 'static) {
        if !self.stop_with_input {
            return;
        }
        std::thread::spawn(move || {
            let mut input = std::io::stdin().lock();
            // An input that cannot be read has ended.
            while matches!(input.read(&mut [0; 64]), Ok(1..)) {}
            act();
        });
    }
}
