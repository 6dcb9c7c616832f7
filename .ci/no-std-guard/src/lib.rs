//! A library without std around the core.
//!
//! It brings its own panic handler. If any crate in its tree links std, there are two of them and the
//! build fails (E0152): the core is proved free of std on the host itself, without another target.
#![no_std]

extern crate alloc;

use alloc::vec::Vec;
use core::alloc::{GlobalAlloc, Layout};
use core::panic::PanicInfo;

use mcp_proto::{Client, Config, Event, Identity, Instant};

#[panic_handler]
fn on_panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}

/// An allocator that has nothing to give: the library is linked, never run.
struct Exhausted;

// SAFETY: null is a valid answer, and nothing is ever freed that was not handed out.
unsafe impl GlobalAlloc for Exhausted {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        core::ptr::null_mut()
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ALLOCATOR: Exhausted = Exhausted;

/// Uses the client from its configuration to its last action, so that all of it is linked.
#[unsafe(no_mangle)]
pub extern "C" fn drive(nanos: u64) -> usize {
    let now = Instant::from_nanos(nanos);
    let config = Config::parse("{}", "guard.json", &mut |_| None).unwrap_or_default();
    let pinned = config.pin(&mut |_| None, &mut |_| None);
    let mut client = Client::new(pinned, Identity::default(), now);
    client.connect(now);
    client.handle(Event::TimePassed, now);
    client.close(now);
    let actions: Vec<_> = core::iter::from_fn(|| client.poll_action()).collect();
    actions.len()
}
