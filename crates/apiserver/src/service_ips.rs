//! Cluster IPs for Services, out of 10.96.0.0/12 as kubeadm sets it.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use baton_schema::FieldError;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::object;

const FIRST: u32 = u32::from_be_bytes([10, 96, 0, 0]);
const LAST: u32 = u32::from_be_bytes([10, 111, 255, 255]);

/// Which addresses are taken, and by which Service uid.
#[derive(Debug, Default)]
pub(crate) struct ServiceIps {
    taken: Mutex<BTreeMap<u32, String>>,
}

impl ServiceIps {
    /// Gives a Service that needs one an address, or checks the one it asks for.
    pub(crate) fn allocate(&self, service: &mut Value) -> Result<(), FieldError> {
        let type_ = service["spec"]["type"].as_str().unwrap_or("ClusterIP");
        if type_ == "ExternalName" {
            return Ok(());
        }
        let uid = object::uid(service).to_owned();
        let asked = service["spec"]["clusterIP"].as_str().unwrap_or_default().to_owned();
        let mut taken = self.taken.lock();
        let address = match asked.as_str() {
            "None" => {
                service["spec"]["clusterIPs"] = json!(["None"]);
                return Ok(());
            }
            "" => (FIRST + 10..LAST)
                .find(|address| !taken.contains_key(address))
                .ok_or_else(|| FieldError::invalid("spec.clusterIPs", json!([]), "range is full"))?,
            text => {
                let refuse = |why: &str| {
                    let detail = format!("failed to allocate IP {text}: {why}");
                    FieldError::invalid("spec.clusterIPs", json!([text]), detail)
                };
                let address = text.parse::<Ipv4Addr>().map_err(|_| refuse("not a valid IP"))?.to_bits();
                if !(FIRST..=LAST).contains(&address) {
                    return Err(refuse("the provided IP is not in the valid range 10.96.0.0/12"));
                }
                if taken.get(&address).is_some_and(|owner| *owner != uid) {
                    return Err(refuse("provided IP is already allocated"));
                }
                address
            }
        };
        taken.insert(address, uid);
        let text = Ipv4Addr::from_bits(address).to_string();
        service["spec"]["clusterIP"] = text.as_str().into();
        service["spec"]["clusterIPs"] = json!([text]);
        Ok(())
    }

    /// Remembers the address of a stored Service.
    pub(crate) fn reserve(&self, service: &Value) {
        if let Some(address) = address(service) {
            self.taken.lock().insert(address, object::uid(service).to_owned());
        }
    }

    /// Frees the address of a Service that was not stored or is gone.
    pub(crate) fn release(&self, service: &Value) {
        if let Some(address) = address(service) {
            let mut taken = self.taken.lock();
            if taken.get(&address).is_some_and(|owner| owner == object::uid(service)) {
                taken.remove(&address);
            }
        }
    }
}

fn address(service: &Value) -> Option<u32> {
    Some(service["spec"]["clusterIP"].as_str()?.parse::<Ipv4Addr>().ok()?.to_bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(uid: &str, ip: &str) -> Value {
        json!({"metadata": {"uid": uid}, "spec": {"clusterIP": ip}})
    }

    #[test]
    fn addresses_are_given_once_until_released() {
        let ips = ServiceIps::default();
        let (mut a, mut b) = (service("a", ""), service("b", ""));
        ips.allocate(&mut a).expect("free");
        ips.allocate(&mut b).expect("free");
        assert_ne!(a["spec"]["clusterIP"], b["spec"]["clusterIP"]);
        let wanted = a["spec"]["clusterIP"].as_str().expect("set").to_owned();
        assert!(ips.allocate(&mut service("c", &wanted)).is_err());
        ips.release(&a);
        ips.allocate(&mut service("c", &wanted)).expect("released");
        assert!(ips.allocate(&mut service("d", "1.2.3.4")).is_err());
        ips.allocate(&mut service("e", "None")).expect("headless");
    }
}
