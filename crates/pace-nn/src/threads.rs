//! Work on a fixed number of shards, with the same result on any number of threads.

use std::sync::Mutex;

/// Length of a shard when a pass divides a flat buffer.
pub const SLICE: usize = 16 * 1024;

/// Runs `work` on every shard. The assignment of shards to threads is not deterministic; the result is, because shards are
/// independent.
pub fn for_each_shard<S: Send>(n_threads: usize, shards: &mut [S], work: impl Fn(usize, &mut S) + Sync) {
    let n_threads = n_threads.clamp(1, shards.len().max(1));
    for_each_shard_with(&mut vec![(); n_threads], shards, |(), index, shard| work(index, shard));
}

/// Like [`for_each_shard`], but with one thread per workspace; a thread uses its workspace for all of its shards. The result
/// of a shard must not depend on the numbers that earlier shards left in the workspace.
pub fn for_each_shard_with<W: Send, S: Send>(
    workspaces: &mut [W],
    shards: &mut [S],
    work: impl Fn(&mut W, usize, &mut S) + Sync,
) {
    let (own, others) = workspaces.split_first_mut().expect("at least one thread");
    if others.is_empty() || shards.len() < 2 {
        shards.iter_mut().enumerate().for_each(|(index, shard)| work(own, index, shard));
        return;
    }
    let others = others.iter_mut().take(shards.len() - 1);
    let queue = Mutex::new(shards.iter_mut().enumerate());
    let take_all = |workspace: &mut W| {
        loop {
            let next = queue.lock().expect("no thread panics while it holds the queue").next();
            let Some((index, shard)) = next else { break };
            work(workspace, index, shard);
        }
    };
    std::thread::scope(|scope| {
        for workspace in others {
            scope.spawn(|| take_all(workspace));
        }
        take_all(own);
    });
}
