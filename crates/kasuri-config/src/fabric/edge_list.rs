//! Fabrics from edge lists and GraphML.

use super::parts::check_rates;
use super::{Fabric, FabricError, Options, UNUSED_LINK_RATE};
use kasuri_formats::details::Details;
use kasuri_formats::edge_list::{Edge, EdgeList};
use kasuri_formats::rate::Speed;
use kasuri_network::id::ChannelId;
use kasuri_network::network::Link;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The fabric of a list. Links have the rates of their lines; links without one have the rate of the options, or else the fastest. If no
/// line has a rate, each link has the rate of the options divided by its period.
///
/// # Errors
/// What is no network, or no rate.
pub(super) fn fabric(list: &EdgeList, options: &Options<'_>) -> Result<Fabric, FabricError> {
    let (list, note) = &with_rate(list, options.link_rate);
    let wrong = |problem| FabricError::Network { name: list.name.clone(), problem };
    let usual = Link { latency: 1, period: 1 };
    let network = list.network(usual, usual).map_err(wrong)?;
    let rates = list.rates();
    let given =
        rates.as_ref().map(|rates| rates.gbit_per_second).or(options.link_rate.map(|rate| f64::from(rate.mbit_per_second()) / 1000.0));
    let channel_gbit_per_second = given.ok_or_else(|| {
        FabricError::Files(format!("{}: gives no rate of its links (gbit=); give it by --link-rate, for links of period 1", list.name))
    })?;
    // By period: what links of it are called and carry.
    let named = rates.map(|rates| rates.by_period()).unwrap_or_default();
    let channels = || (0..network.channel_count()).map(|channel| network.link(ChannelId(channel)).period);
    let gbit = |period: u32| match named.get(&period) {
        Some(speed) => f64::from(speed.mbit_per_second()) / 1000.0,
        None => channel_gbit_per_second / f64::from(period),
    };
    let mut places: BTreeMap<u32, usize> = channels().map(|period| (period, 0)).collect();
    places.values_mut().zip(0..).for_each(|(place, number)| *place = number);
    check_rates(&list.name, places.len())?;
    let details = Details {
        hosts: (0..network.terminal_count()).map(|terminal| network.terminal_names().of(terminal)).collect(),
        rates: places.keys().map(|&period| format!("{} Gbit/s", gbit(period))).collect(),
        gbit_per_second: places.keys().map(|&period| gbit(period)).collect(),
        channel_rates: channels().map(|period| places[&period] as u8).collect(),
        channel_gbit_per_second,
        notes: list.notes.iter().cloned().chain(note.map(str::to_owned)).collect(),
        ..Details::without_addresses(&network)
    };
    Ok(Fabric { network, details })
}

/// The list with this rate for links without one, if other links have rates; a note if no link needs it.
fn with_rate(list: &EdgeList, rate: Option<Speed>) -> (Cow<'_, EdgeList>, Option<&'static str>) {
    let (Some(rate), Some(_)) = (rate, list.rates()) else { return (Cow::Borrowed(list), None) };
    let has_no_rate = |edge: &Edge| edge.rate.is_none() && edge.period.is_none();
    if !list.edges.iter().any(has_no_rate) {
        return (Cow::Borrowed(list), Some(UNUSED_LINK_RATE));
    }
    let mut list = list.clone();
    list.edges.iter_mut().filter(|edge| has_no_rate(edge)).for_each(|edge| edge.rate = Some(rate));
    (Cow::Owned(list), None)
}
