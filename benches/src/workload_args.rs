//! The workload on the command line: a flag for each parameter, the paper's Table 1 as defaults.

use std::ops::RangeInclusive;

use clap::{Args, ValueEnum};
use matcher::fixtures::workload::{Config, Popularity, Spread, Terrain, Workload, WorkloadError};

/// What the workload is made of. The defaults are those of the paper's Table 1.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Workload")]
pub struct WorkloadArgs {
    /// Equal seeds give equal workloads.
    #[arg(long, default_value_t = Config::default().seed)]
    pub seed: u64,
    /// Subscriptions, one to a client.
    #[arg(long, default_value_t = Config::default().subscriptions)]
    pub subscriptions: u32,
    /// Filters of each subscription.
    #[arg(long, default_value_t = Config::default().filters_per_subscription)]
    pub filters_per_subscription: u32,
    /// The share of the ground that a filter's area covers: 0.0001 is 0.01 %.
    #[arg(long, default_value_t = Config::default().coverage)]
    pub coverage: f64,
    /// The share of the events whose content satisfies a filter: 0.005 is 0.5 %.
    #[arg(long, default_value_t = Config::default().selectivity)]
    pub selectivity: f64,
    /// How names are drawn.
    #[arg(long, value_enum, default_value_t = Content::Topics)]
    pub content: Content,
    /// Distinct attribute names.
    #[arg(long, default_value_t = Config::default().names)]
    pub names: u32,
    /// How many topics the names fall into, evenly; 20, or 1 with --content zipf, when absent.
    #[arg(long)]
    pub topics: Option<u32>,
    /// How much more popular some names of a topic are than others: 0, or 1.8 with --content zipf, when absent.
    #[arg(long)]
    pub popularity: Option<f64>,
    /// Constraints of a filter, each on another name: least-most.
    #[arg(long, value_parser = range, default_value = "3-5")]
    pub constraints: RangeInclusive<u32>,
    /// Attributes of an event: least-most.
    #[arg(long, value_parser = range, default_value = "3-5")]
    pub attributes: RangeInclusive<u32>,
    /// The ground.
    #[arg(long, value_enum, default_value_t = Ground::Plane)]
    pub terrain: Ground,
    /// The side of the ground in metres, Milan's when absent; the globe has its own.
    #[arg(long, default_value_t = 13_470.0)]
    pub side_m: f64,
    /// The middle of a region: longitude,latitude in degrees.
    #[arg(long, value_parser = lon_lat, default_value = "9.19,45.46", allow_hyphen_values = true)]
    pub middle: [f64; 2],
    /// Radii in metres, comma-separated, dealt evenly to the filters; the ground is then resized to keep the coverage.
    #[arg(long, value_delimiter = ',')]
    pub radii_m: Vec<f64>,
    /// Where clients are.
    #[arg(long, value_enum, default_value_t = Place::Uniform)]
    pub clients_spread: Place,
    /// Where events happen.
    #[arg(long, value_enum, default_value_t = Place::Uniform)]
    pub events_spread: Place,
    /// Cells along a side of the ground that zipf spreads rank.
    #[arg(long, default_value_t = 32)]
    pub zipf_cells: u32,
    /// How steep zipf spreads are.
    #[arg(long, default_value_t = 1.0)]
    pub zipf_exponent: f64,
    /// Gives each filter a circle of its own that stays, instead of one that follows its client.
    #[arg(long)]
    pub own_centres: bool,
}

/// How filters and events come to have the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Content {
    /// Names fall into topics, and each filter and event has names of one topic.
    Topics,
    /// Some names are far more popular than others.
    Zipf,
}

/// The kinds of ground.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Ground {
    /// A square of the planar world.
    Plane,
    /// A patch of the Earth.
    Region,
    /// All of the Earth.
    Globe,
}

/// The kinds of spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Place {
    /// Everywhere alike.
    Uniform,
    /// Hot spots.
    Zipf,
}

impl WorkloadArgs {
    /// What the flags say.
    ///
    /// # Errors
    /// Which flag asks for what cannot be had, and why.
    pub fn config(&self) -> anyhow::Result<Config> {
        let config = self.unchecked();
        // A workload stores nothing, so asking for one is the check.
        match Workload::new(config.clone()) {
            Ok(_) => Ok(config),
            Err(error) => anyhow::bail!("{}: {error}", self.flags(&error)),
        }
    }

    fn unchecked(&self) -> Config {
        let spread = |place| match place {
            Place::Uniform => Spread::Uniform,
            Place::Zipf => Spread::Zipf { cells_per_side: self.zipf_cells, exponent: self.zipf_exponent },
        };
        let model = match self.content {
            Content::Topics => Config::default(),
            Content::Zipf => Config::default().zipf_names(),
        };
        let [lon, lat] = self.middle;
        Config {
            seed: self.seed,
            subscriptions: self.subscriptions,
            filters_per_subscription: self.filters_per_subscription,
            coverage: self.coverage,
            selectivity: self.selectivity,
            names: self.names,
            topics: self.topics.unwrap_or(model.topics),
            popularity: match self.popularity {
                Some(0.0) => Popularity::Even,
                Some(exponent) => Popularity::Zipf { exponent },
                None => model.popularity,
            },
            constraints: self.constraints.clone(),
            attributes: self.attributes.clone(),
            terrain: match self.terrain {
                Ground::Plane => Terrain::Plane { side_m: self.side_m },
                Ground::Region => Terrain::Region { lon, lat, side_m: self.side_m },
                Ground::Globe => Terrain::Globe,
            },
            radii_m: self.radii_m.clone(),
            clients_spread: spread(self.clients_spread),
            events_spread: spread(self.events_spread),
            co_located: !self.own_centres,
        }
    }

    /// The flags that an error is about, with what they say.
    fn flags(&self, error: &WorkloadError) -> String {
        let range = |range: &RangeInclusive<u32>| format!("{}-{}", range.start(), range.end());
        let topics = self.unchecked().topics;
        match error {
            WorkloadError::Counts { what: "constraints", .. } => {
                format!("--constraints {}", range(&self.constraints))
            }
            WorkloadError::Counts { what: "attributes", .. } => {
                format!("--attributes {}", range(&self.attributes))
            }
            WorkloadError::Counts { .. } => format!("--names {} and --topics {topics}", self.names),
            WorkloadError::Value { field: "clients_spread" | "events_spread", .. } => {
                format!("--zipf-cells {} and --zipf-exponent {}", self.zipf_cells, self.zipf_exponent)
            }
            WorkloadError::Value { field, .. } => format!("--{}", field.replace('_', "-")),
            WorkloadError::Selectivity { .. } => format!(
                "--selectivity {} with --names {}, --topics {topics}, --constraints {} and --attributes {}",
                self.selectivity,
                self.names,
                range(&self.constraints),
                range(&self.attributes),
            ),
            WorkloadError::Ground => "--terrain, --side-m, --middle or --radii-m".to_owned(),
        }
    }
}

/// `least-most`, or one number for both.
fn range(text: &str) -> Result<RangeInclusive<u32>, String> {
    let number = |text: &str| text.parse().map_err(|error| format!("{text:?} is no count: {error}"));
    let (least, most) = text.split_once('-').unwrap_or((text, text));
    let range = number(least)?..=number(most)?;
    if range.is_empty() {
        Err(format!("the least, {least}, is more than the most, {most}"))
    } else {
        Ok(range)
    }
}

fn lon_lat(text: &str) -> Result<[f64; 2], String> {
    let number = |text: &str, most: f64| match text.trim().parse::<f64>() {
        Ok(number) if number.abs() <= most => Ok(number),
        Ok(_) => Err(format!("{text} is not from -{most} to {most} degrees")),
        Err(error) => Err(format!("{text:?} is no number: {error}")),
    };
    let (lon, lat) = text.split_once(',').ok_or("there is no comma between longitude and latitude")?;
    Ok([number(lon, 180.0)?, number(lat, 90.0)?])
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        workload: WorkloadArgs,
    }

    fn parse(flags: &str) -> WorkloadArgs {
        Program::parse_from(std::iter::once("program").chain(flags.split_whitespace())).workload
    }

    #[test]
    fn no_flags_are_the_default_workload() {
        assert_eq!(parse("").config().unwrap(), Config::default());
        assert_eq!(parse("--content zipf").config().unwrap(), Config::default().zipf_names());
    }

    #[test]
    fn every_parameter_has_a_flag() {
        let flags = "--seed 7 --subscriptions 50 --filters-per-subscription 2 --coverage 0.25 --selectivity 0.001 \
                     --names 60 --topics 6 --popularity 0.5 --constraints 2 --attributes 4-6 --terrain region \
                     --side-m 900 --middle -70.5,-30 --radii-m 3,4.5 --clients-spread zipf --events-spread zipf \
                     --zipf-cells 8 --zipf-exponent 2 --own-centres";
        let spread = Spread::Zipf { cells_per_side: 8, exponent: 2.0 };
        let expected = Config {
            seed: 7,
            subscriptions: 50,
            filters_per_subscription: 2,
            coverage: 0.25,
            selectivity: 0.001,
            names: 60,
            topics: 6,
            popularity: Popularity::Zipf { exponent: 0.5 },
            constraints: 2..=2,
            attributes: 4..=6,
            terrain: Terrain::Region { lon: -70.5, lat: -30.0, side_m: 900.0 },
            radii_m: vec![3.0, 4.5],
            clients_spread: spread,
            events_spread: spread,
            co_located: false,
        };
        assert_eq!(parse(flags).config().unwrap(), expected);
    }

    #[test]
    fn an_error_names_its_flag_and_says_why() {
        let cases = [
            ("--topics 7", "--names 100 and --topics 7: the names do not fit: a topic has 14 names"),
            ("--topics 0", "--names 100 and --topics 0: "),
            ("--constraints 3-6", "--constraints 3-6: the constraints do not fit: a topic has 5 names"),
            ("--attributes 9", "--attributes 9-9: "),
            ("--topics 1", "--selectivity 0.005 with --names 100, --topics 1"),
            ("--coverage 2", "--coverage: coverage must be more than 0, up to 1"),
            ("--subscriptions 0", "--subscriptions: "),
            ("--popularity nan", "--popularity: "),
            ("--clients-spread zipf --zipf-cells 0", "--zipf-cells 0 and --zipf-exponent 1: "),
            ("--terrain region --side-m 1e8", "--terrain, --side-m, --middle or --radii-m: "),
            ("--radii-m=-3", "--terrain, --side-m, --middle or --radii-m: "),
        ];
        for (flags, expected) in cases {
            let error = parse(flags).config().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{flags}: {error}");
        }
        for flags in
            [["--constraints", "5-3"], ["--attributes", "x"], ["--middle", "9"], ["--middle", "0,100"]]
        {
            let error =
                Program::try_parse_from(["program"].into_iter().chain(flags)).unwrap_err().to_string();
            assert!(error.contains(flags[0]), "{error}");
        }
    }
}
