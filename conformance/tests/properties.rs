//! What holds whatever servers, applications and schedules do.
//!
//! Most of it is judged at the World's border with every action; see `conformance::world::Rule`.
//! `PROPERTY_SCALE=10` runs ten times as many cases.

use conformance::strategies::{self, perform};
use conformance::world::{Bytes, World};
use mcp_proto::Duration;
use proptest::prelude::*;
use proptest::test_runner::Config as Runner;

fn cases(count: u32) -> Runner {
    let scale = std::env::var("PROPERTY_SCALE").ok();
    let scale: u32 = scale.and_then(|scale| scale.parse().ok()).unwrap_or(1);
    Runner {
        cases: count * scale,
        max_shrink_iters: 4_096,
        ..Runner::default()
    }
}

fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..most)
}

const NAMES: [&str; 2] = ["a", "b"];

/// Long enough for every deadline of generated peers, one after the other.
const LONG: Duration = Duration::from_secs(60);

/// Lets everything come to its end: whatever was accepted ends by its deadlines, and close ends all.
fn finish(world: &mut World) -> Result<(), TestCaseError> {
    world.run_for(LONG);
    verdict(world)?;
    let running = world.running();
    prop_assert!(
        running.is_empty(),
        "{running:?} still run\n{}",
        world.transcript()
    );
    world.close();
    verdict(world)?;
    prop_assert!(
        world.client.is_closed(),
        "never closed\n{}",
        world.transcript()
    );
    prop_assert_eq!(world.client.poll_timeout(), None);
    Ok(())
}

fn verdict(world: &mut World) -> Result<(), TestCaseError> {
    world
        .verdict()
        .map_err(|breach| TestCaseError::fail(breach.to_string()))
}

proptest! {
    #![proptest_config(cases(6_000))]

    /// P1, P3, P4, P6, P7 (R1, R5, R14, R15, R40, R41, R42, R60, R81, R90, R100).
    #[test]
    fn the_border_holds(plan in bytes(200), schedule in bytes(300)) {
        let mut plan = Bytes::new(plan);
        let mut world = strategies::world(&mut plan, &NAMES, Bytes::new(schedule));
        world.connect();
        let steps = strategies::steps(&mut plan, &NAMES);
        perform(&mut world, &steps);
        finish(&mut world)?;
    }
}
