//! How many clients, live objects and other things there may be, over all shards together and for each tenant.

mod clients;
mod live;
mod quota;

pub(crate) use clients::{ClientLimit, ClientPermit};
pub(crate) use live::LiveLimit;
pub(crate) use quota::{Quota, QuotaPermit, Quotas};
