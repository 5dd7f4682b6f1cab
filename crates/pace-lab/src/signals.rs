//! Ctrl-C and SIGTERM as a flag that the training loop looks at between updates.
//!
//! The first signal asks: the loop finishes its update, saves and leaves. The second one ends the process at once, which
//! loses nothing that was durable. What "leave" means is the caller's business.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::error::LabError;

/// Who asked the run to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopSignal {
    /// Ctrl-C at the terminal.
    Interrupt,
    /// SIGTERM, from a cluster's scheduler or a service manager.
    Terminate,
}

impl StopSignal {
    const ALL: [StopSignal; 2] = [StopSignal::Interrupt, StopSignal::Terminate];

    /// The name that people know it by.
    pub fn name(self) -> &'static str {
        match self {
            StopSignal::Interrupt => "SIGINT",
            StopSignal::Terminate => "SIGTERM",
        }
    }

    /// The status that shells expect of a process ended by this signal: 130 or 143.
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

/// Whether the run was asked to stop. Clones share the answer.
#[derive(Clone, Debug, Default)]
pub struct StopFlag {
    /// The number of the signal, or zero.
    signal: Arc<AtomicUsize>,
}

impl StopFlag {
    /// Listens for signals from now on, for the rest of the process: the system's own handlers are not put back. Later
    /// calls give the same flag, so that several runs in one process stop together.
    pub fn install() -> Result<StopFlag, LabError> {
        static INSTALLED: OnceLock<StopFlag> = OnceLock::new();
        if let Some(installed) = INSTALLED.get() {
            return Ok(installed.clone());
        }
        let stop = StopFlag::default();
        let asked_before = Arc::new(AtomicBool::new(false));
        for signal in StopSignal::ALL {
            let (number, code) = (signal.number(), signal.exit_code());
            // The handlers run in this order. The exit comes before the flag that arms it: it takes two signals.
            flag::register_conditional_shutdown(number, code, Arc::clone(&asked_before))
                .and_then(|_| flag::register_usize(number, Arc::clone(&stop.signal), number as usize))
                .and_then(|_| flag::register(number, Arc::clone(&asked_before)))
                .map_err(|source| LabError::NoSignals { signal: signal.name(), source })?;
        }
        Ok(INSTALLED.get_or_init(|| stop).clone())
    }

    /// A flag that no signal sets, for tests and for programs with handlers of their own.
    pub fn detached() -> StopFlag {
        StopFlag::default()
    }

    /// Sets the flag by hand.
    pub fn request(&self, signal: StopSignal) {
        self.signal.store(signal.number() as usize, Ordering::SeqCst);
    }

    /// The signal that asked the run to stop, if one did. Cheap enough for every update.
    pub fn requested(&self) -> Option<StopSignal> {
        let number = self.signal.load(Ordering::SeqCst);
        StopSignal::ALL.into_iter().find(|signal| signal.number() as usize == number)
    }
}

#[cfg(test)]
mod tests {
    use super::{StopFlag, StopSignal};

    #[test]
    fn clones_share_the_answer() {
        let stop = StopFlag::detached();
        let seen_by_the_loop = stop.clone();
        assert_eq!(seen_by_the_loop.requested(), None);
        stop.request(StopSignal::Terminate);
        assert_eq!(seen_by_the_loop.requested(), Some(StopSignal::Terminate));
    }

    #[test]
    fn exit_codes_are_those_of_shells() {
        assert_eq!(StopSignal::Interrupt.exit_code(), 130);
        assert_eq!(StopSignal::Terminate.exit_code(), 143);
    }
}
