//! Answers that come later, in the order of their times.

use std::time::Duration;

use serde_json::{Value, json};

use crate::message;

#[derive(Debug, Default)]
pub(super) struct Jobs {
    jobs: Vec<Job>,
}

#[derive(Debug)]
struct Job {
    at: Duration,
    request: Value,
    work: Work,
}

#[derive(Debug)]
pub(super) enum Work {
    /// Send this response.
    Answer(Value),
    /// Send one progress notification after another, then the response.
    Progress {
        token: Option<Value>,
        done: u64,
        steps: u64,
        every: Duration,
        answer: Value,
    },
}

impl Jobs {
    pub(super) fn add(&mut self, request: Value, at: Duration, work: Work) {
        // Behind those of the same time, so that equal times keep their order.
        let index = self.jobs.partition_point(|job| job.at <= at);
        self.jobs.insert(index, Job { at, request, work });
    }

    pub(super) fn cancel(&mut self, request: &Value) {
        self.jobs.retain(|job| job.request != *request);
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        self.jobs.first().map(|job| job.at)
    }

    /// The next message that is due.
    pub(super) fn due(&mut self, now: Duration) -> Option<Value> {
        while self.deadline().is_some_and(|at| at <= now) {
            let job = self.jobs.remove(0);
            match job.work {
                Work::Answer(answer) => return Some(answer),
                Work::Progress {
                    token,
                    done,
                    steps,
                    every,
                    answer,
                } => {
                    if done == steps {
                        return Some(answer);
                    }
                    let done = done + 1;
                    let notification = token.as_ref().map(|token| {
                        let params =
                            json!({"progressToken": token, "progress": done, "total": steps});
                        message::notification("notifications/progress", params)
                    });
                    // The answer follows the last step at once.
                    let wait = if done == steps { Duration::ZERO } else { every };
                    let work = Work::Progress {
                        token,
                        done,
                        steps,
                        every,
                        answer,
                    };
                    self.add(job.request, job.at.saturating_add(wait), work);
                    if notification.is_some() {
                        return notification;
                    }
                }
            }
        }
        None
    }
}
