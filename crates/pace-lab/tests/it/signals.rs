//! Stop requests by one or two signals. A signal affects a whole process, so each test starts its own.

use std::path::Path;

use pace_lab::{StopFlag, StopSignal};

use crate::processes::{asked, child};

/// The child: sends itself the signals in the variable, and reports the stop request by its exit code.
#[test]
fn child_gets_signals() {
    let Some(signals) = asked() else { return };
    let stop = StopFlag::install().expect("handlers");
    let again = StopFlag::install().expect("the same flag");
    assert_eq!(stop.requested(), None);
    for number in signals.to_str().expect("numbers").split(' ') {
        signal_hook::low_level::raise(number.parse().expect("a number")).expect("raised");
    }
    assert_eq!(stop.requested(), again.requested());
    std::process::exit(match stop.requested() {
        None => 50,
        Some(StopSignal::Interrupt) => 52,
        Some(StopSignal::Terminate) => 65,
    });
}

#[test]
fn the_first_signal_requests_a_stop_and_the_second_ends_the_process() {
    let check = |signals: &str, expected: i32| {
        let status = child("signals::child_gets_signals", Path::new(signals)).status().expect("a child");
        assert_eq!(status.code(), Some(expected), "signals {signals}");
    };
    const INT: i32 = signal_hook::consts::SIGINT;
    const TERM: i32 = signal_hook::consts::SIGTERM;
    check(&format!("{INT}"), 52);
    check(&format!("{TERM}"), 65);
    check(&format!("{INT} {INT}"), 130);
    check(&format!("{TERM} {TERM}"), 143);
    check(&format!("{INT} {TERM}"), 143);
    check(&format!("{TERM} {INT}"), 130);
}
