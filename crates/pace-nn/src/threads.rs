//! Work cut into a fixed number of shards and carried out by any number of threads with the same result.

use std::sync::Mutex;

/// Runs `work` on every shard. Which thread takes which shard is left to chance; since no shard sees another, the result
/// is not.
pub fn for_each_shard<S: Send>(n_threads: usize, shards: &mut [S], work: impl Fn(usize, &mut S) + Sync) {
    let n_threads = n_threads.clamp(1, shards.len().max(1));
    if n_threads == 1 {
        shards.iter_mut().enumerate().for_each(|(index, shard)| work(index, shard));
        return;
    }
    let queue = Mutex::new(shards.iter_mut().enumerate());
    let take_all = || {
        loop {
            let next = queue.lock().expect("no thread panics while it holds the queue").next();
            let Some((index, shard)) = next else { break };
            work(index, shard);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..n_threads {
            scope.spawn(take_all);
        }
        take_all();
    });
}
