mod accepted;
mod caps;
mod meaning;
mod properties;
mod refused;
