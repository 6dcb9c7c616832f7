//! The suite itself.

#![cfg(target_os = "linux")]

use std::collections::BTreeSet;

use conformance::suite::{self, Driver, Environment, Scenario, Session, Setup};

struct Absent;

impl Driver for Absent {
    fn name(&self) -> String {
        "absent".to_owned()
    }

    fn connect(&self, _: Setup) -> Result<Box<dyn Session>, String> {
        Err("not written yet".to_owned())
    }
}

/// A scenario that needs no client proves nothing about one.
#[test]
fn a_driver_that_does_not_exist_passes_no_scenario() {
    let outcome = suite::run(&Absent, &Environment::new("/nowhere"));
    assert_eq!(outcome.passed, [""; 0]);
    assert_eq!(outcome.failed.len(), suite::all().len());
    for (name, reason) in &outcome.failed {
        assert!(reason.contains("not written yet"), "{name}: {reason}");
    }
    let first = outcome.to_string().lines().next().map(str::to_owned);
    let expected = format!("absent: 0 of {} passed", suite::all().len());
    assert_eq!(first, Some(expected));
}

#[test]
fn every_scenario_has_a_name_of_its_own() {
    let names: BTreeSet<&str> = suite::all().iter().map(Scenario::name).collect();
    assert_eq!(names.len(), suite::all().len());
}
