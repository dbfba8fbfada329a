//! Prints the destinations of the batch of an experiment file, one line per terminal, for comparisons with other simulators:
//! `cargo run --release -p kasuri --example list_messages FILE.toml`.
#![allow(clippy::print_stdout)]
use kasuri_config::Document;
use kasuri_network::id::TerminalId;
use kasuri_network::rng::Purpose;
use kasuri_network::topology::NoFiles;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("name an experiment file")?;
    let document = Document::parse(&file, &std::fs::read_to_string(&file)?)?;
    let point = document.points()?.into_iter().next().ok_or("no point")?;
    let scenario = document.study(&point, &NoFiles)?.scenario;
    let class = scenario.classes.first().ok_or("no traffic")?;
    let count = class.packets_per_terminal.ok_or("the traffic is no batch")?;
    for terminal in 0..scenario.network.terminal_count() {
        // As both engines draw: the destination, then the length.
        let mut stream = scenario.streams.get(Purpose::Destination, terminal);
        let mut line = String::new();
        for _ in 0..count {
            if let Some(destination) = class.pattern.destination(TerminalId(terminal), &mut stream) {
                line.push_str(&format!("{} ", destination.0));
            }
            class.sizes.draw(&mut stream);
        }
        println!("{}", line.trim_end());
    }
    Ok(())
}
