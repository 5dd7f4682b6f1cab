//! Work cut into a fixed number of shards and carried out by any number of threads with the same result.

use std::sync::Mutex;

/// Numbers of a flat buffer that are one shard of a pass over it.
pub const SLICE: usize = 16 * 1024;

/// Runs `work` on every shard. Which thread takes which shard is left to chance; since no shard sees another, the result
/// is not.
pub fn for_each_shard<S: Send>(n_threads: usize, shards: &mut [S], work: impl Fn(usize, &mut S) + Sync) {
    let n_threads = n_threads.clamp(1, shards.len().max(1));
    for_each_shard_with(&mut vec![(); n_threads], shards, |(), index, shard| work(index, shard));
}

/// The same on as many threads as there are `rooms`; each thread has one of them to work in. What a room holds when a
/// shard is begun is left to chance, so that nothing may depend on it.
pub fn for_each_shard_with<R: Send, S: Send>(
    rooms: &mut [R],
    shards: &mut [S],
    work: impl Fn(&mut R, usize, &mut S) + Sync,
) {
    let (own, others) = rooms.split_first_mut().expect("at least one thread");
    if others.is_empty() || shards.len() < 2 {
        shards.iter_mut().enumerate().for_each(|(index, shard)| work(own, index, shard));
        return;
    }
    let others = others.iter_mut().take(shards.len() - 1);
    let queue = Mutex::new(shards.iter_mut().enumerate());
    let take_all = |room: &mut R| {
        loop {
            let next = queue.lock().expect("no thread panics while it holds the queue").next();
            let Some((index, shard)) = next else { break };
            work(room, index, shard);
        }
    };
    std::thread::scope(|scope| {
        for room in others {
            scope.spawn(|| take_all(room));
        }
        take_all(own);
    });
}
