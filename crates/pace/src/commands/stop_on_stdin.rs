//! The hidden option with which a process that `pace reproduce` has started stops when its standard input ends: because
//! `pace reproduce` closed it, or because `pace reproduce` was killed.

use std::io::Read;

use clap::Args;
use pace_lab::{StopFlag, StopSignal};

#[derive(Debug, Args)]
pub struct StdinArgs {
    /// Stop as on SIGTERM when standard input ends.
    #[arg(long, alias = "stop-with-input", hide = true)]
    stop_on_stdin_eof: bool,
}

impl StdinArgs {
    /// Requests a stop when the input ends.
    pub fn watch(&self, stop: &StopFlag) {
        let stop = stop.clone();
        self.at_end(move || stop.request(StopSignal::Terminate));
    }

    /// Exits the process when the input ends, for a command without intermediate results to save.
    pub fn exit_with(&self) {
        self.at_end(|| std::process::exit(i32::from(crate::STOPPED)));
    }

    fn at_end(&self, act: impl FnOnce() + Send + 'static) {
        if !self.stop_on_stdin_eof {
            return;
        }
        std::thread::spawn(move || {
            let mut input = std::io::stdin().lock();
            // A read error counts as the end.
            while matches!(input.read(&mut [0; 64]), Ok(1..)) {}
            act();
        });
    }
}
