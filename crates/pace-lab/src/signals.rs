//! Stop requests by Ctrl-C and SIGTERM, as a flag that the training loop checks between updates.
//!
//! After the first signal, the caller finishes its update, saves a checkpoint and exits. The second signal ends the process at
//! once; durable data is not lost.

use std::fmt::{self, Display, Formatter};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::error::LabError;

/// The signal of a stop request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopSignal {
    /// Ctrl-C at the terminal.
    Interrupt,
    /// SIGTERM, from a cluster's scheduler or a service manager.
    Terminate,
}

impl StopSignal {
    const ALL: [StopSignal; 2] = [StopSignal::Interrupt, StopSignal::Terminate];

    /// The exit code of a process ended by this signal, as shells report it: 130 or 143.
    pub fn exit_code(self) -> i32 {
        128 + self.number()
    }

    fn number(self) -> i32 {
        match self {
            StopSignal::Interrupt => SIGINT,
            StopSignal::Terminate => SIGTERM,
        }
    }
}

impl Display for StopSignal {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            StopSignal::Interrupt => "SIGINT",
            StopSignal::Terminate => "SIGTERM",
        })
    }
}

/// A flag for stop requests. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct StopFlag {
    /// The number of the signal, or zero.
    signal: Arc<AtomicUsize>,
}

impl StopFlag {
    /// Installs signal handlers for the rest of the process. Later calls return the same flag, so that several runs in one
    /// process stop together.
    pub fn install() -> Result<StopFlag, LabError> {
        static INSTALLED: OnceLock<StopFlag> = OnceLock::new();
        if let Some(installed) = INSTALLED.get() {
            return Ok(installed.clone());
        }
        let stop = StopFlag::default();
        let asked_before = Arc::new(AtomicBool::new(false));
        for signal in StopSignal::ALL {
            let (number, code) = (signal.number(), signal.exit_code());
            // The handlers run in this order. The conditional exit comes before the flag that enables it, so it needs two signals.
            flag::register_conditional_shutdown(number, code, Arc::clone(&asked_before))
                .and_then(|_| flag::register_usize(number, Arc::clone(&stop.signal), number as usize))
                .and_then(|_| flag::register(number, Arc::clone(&asked_before)))
                .map_err(|source| LabError::NoSignals { signal, source })?;
        }
        Ok(INSTALLED.get_or_init(|| stop).clone())
    }

    /// A flag that no signal sets, for tests and for programs with handlers of their own.
    pub fn detached() -> StopFlag {
        StopFlag::default()
    }

    /// Sets the flag without a signal.
    pub fn request(&self, signal: StopSignal) {
        self.signal.store(signal.number() as usize, Ordering::SeqCst);
    }

    /// The signal of the stop request, if there was one. Fast enough for every update.
    pub fn requested(&self) -> Option<StopSignal> {
        let number = self.signal.load(Ordering::SeqCst);
        StopSignal::ALL.into_iter().find(|signal| signal.number() as usize == number)
    }
}

#[cfg(test)]
mod tests {
    use super::{StopFlag, StopSignal};

    #[test]
    fn clones_of_a_flag_share_its_state() {
        let stop = StopFlag::detached();
        let seen_by_the_loop = stop.clone();
        assert_eq!(seen_by_the_loop.requested(), None);
        stop.request(StopSignal::Terminate);
        assert_eq!(seen_by_the_loop.requested(), Some(StopSignal::Terminate));
    }

    #[test]
    fn exit_codes_are_128_plus_the_signal() {
        assert_eq!(StopSignal::Interrupt.exit_code(), 130);
        assert_eq!(StopSignal::Terminate.exit_code(), 143);
    }
}
