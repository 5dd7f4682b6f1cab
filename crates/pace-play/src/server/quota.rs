//! Limits on the connections and sessions of one address, so that one client leaves places for the others.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use super::guard::RateLimiter;

/// Places of one kind, limited in total and per address.
#[derive(Debug)]
pub(crate) struct Quota {
    max: usize,
    max_per_address: usize,
    taken: Mutex<TakenPlaces>,
}

#[derive(Debug, Default)]
struct TakenPlaces {
    total: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// A taken place; dropping it frees the place.
#[derive(Debug)]
pub(crate) struct Place {
    quota: Arc<Quota>,
    /// The address that the place counts for, if any.
    address: Option<IpAddr>,
}

impl Quota {
    pub(crate) fn new(max: usize, max_per_address: usize) -> Arc<Quota> {
        Arc::new(Quota { max, max_per_address: max_per_address.min(max), taken: Mutex::default() })
    }

    /// Takes a place, or returns the limit that is reached. Without an address only the total counts.
    pub(crate) fn take(self: &Arc<Quota>, address: Option<IpAddr>) -> Result<Place, String> {
        let mut taken = self.taken();
        if taken.total >= self.max {
            return Err(format!("all {} are in use", self.max));
        }
        if let Some(address) = address {
            let by_address = taken.by_address.entry(address).or_default();
            if *by_address >= self.max_per_address {
                return Err(format!("all {} of one address are in use", self.max_per_address));
            }
            *by_address += 1;
        }
        taken.total += 1;
        Ok(Place { quota: Arc::clone(self), address })
    }

    /// Whether no place is taken.
    pub(crate) fn is_unused(&self) -> bool {
        self.taken().total == 0
    }

    fn taken(&self) -> MutexGuard<'_, TakenPlaces> {
        self.taken.lock().expect("no thread panics while it holds this lock")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.quota.taken();
        taken.total -= 1;
        if let Some(address) = self.address
            && let Some(by_address) = taken.by_address.get_mut(&address)
        {
            *by_address -= 1;
            if *by_address == 0 {
                taken.by_address.remove(&address);
            }
        }
    }
}

/// The rate at which each address may start something.
#[derive(Debug)]
pub(crate) struct RatePerAddress {
    rate: f64,
    burst: f64,
    rate_limiters: Mutex<HashMap<IpAddr, RateLimiter>>,
}

impl RatePerAddress {
    /// Allows `per_minute` starts per minute, all of which may come at once.
    pub(crate) fn new(per_minute: usize) -> RatePerAddress {
        let burst = per_minute as f64;
        RatePerAddress { rate: burst / 60.0, burst, rate_limiters: Mutex::default() }
    }

    /// Whether this address may start one more now.
    pub(crate) fn allows(&self, address: IpAddr, now: Instant) -> bool {
        let mut rate_limiters = self.rate_limiters();
        rate_limiters
            .entry(address)
            .or_insert_with(|| RateLimiter::new(self.rate, self.burst, now))
            .allows(now)
    }

    /// Drops the addresses whose allowance is full again.
    pub(crate) fn remove_full(&self, now: Instant) {
        self.rate_limiters().retain(|_, rate_limiter| !rate_limiter.is_full(now));
    }

    fn rate_limiters(&self) -> MutexGuard<'_, HashMap<IpAddr, RateLimiter>> {
        self.rate_limiters.lock().expect("no thread panics while it holds this lock")
    }
}

/// The address that limits count by. A client with IPv6 has a whole /64 network at its disposal, so that network counts as one.
pub(crate) fn counted_address(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::time::{Duration, Instant};

    use super::{Quota, RatePerAddress, counted_address};

    fn address(text: &str) -> IpAddr {
        counted_address(text.parse().expect("an address"))
    }

    #[test]
    fn quota_limits_each_address_and_dropping_frees_a_place() {
        let quota = Quota::new(5, 3);
        let (one, other) = (Some(address("10.0.0.1")), Some(address("10.0.0.2")));
        let mut places: Vec<_> = (0..3).map(|_| quota.take(one).expect("a place")).collect();
        assert!(quota.take(one).expect_err("its share is taken").contains("all 3 of one address"));
        places.extend((0..2).map(|_| quota.take(other).expect("a place")));
        assert!(quota.take(other).expect_err("everything is taken").contains("all 5"));
        places.remove(0);
        places.push(quota.take(one).expect("its freed place"));
        assert!(!quota.is_unused());
        drop(places);
        assert!(quota.is_unused() && quota.taken().by_address.is_empty());
    }

    #[test]
    fn ipv6_network_counts_as_one_address() {
        assert_eq!(address("2001:db8:1:2::3"), address("2001:db8:1:2:ffff::9"));
        assert_ne!(address("2001:db8:1:2::3"), address("2001:db8:1:3::3"));
        assert_eq!(address("::ffff:10.0.0.1"), address("10.0.0.1"));
        assert_ne!(address("10.0.0.1"), address("10.0.0.2"));
    }

    #[test]
    fn starts_are_limited_per_address_and_minute() {
        let (rate, start) = (RatePerAddress::new(60), Instant::now());
        let starts = |of: &str, now: Instant| {
            let of = address(of);
            (0..100).filter(|_| rate.allows(of, now)).count()
        };
        assert_eq!(starts("10.0.0.1", start), 60);
        assert_eq!(starts("10.0.0.1", start + Duration::from_secs(10)), 10);
        assert_eq!(starts("10.0.0.2", start + Duration::from_secs(10)), 60);
        rate.remove_full(start + Duration::from_secs(65));
        assert_eq!(rate.rate_limiters().len(), 2, "neither allowance is full again");
        rate.remove_full(start + Duration::from_secs(71));
        assert!(rate.rate_limiters().is_empty());
    }
}
