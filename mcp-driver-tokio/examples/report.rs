//! Connects to the servers of a configuration file and prints what became of them.
//!
//! ```sh
//! cargo run -p mcp-driver-tokio --example report -- .mcp.json
//! ```

use mcp_driver_tokio::{Client, Config};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    if let Err(error) = run().await {
        // With what to do about it, if it is an error of the client.
        eprintln!("error: {error:#}");
        std::process::exit(1);
    }
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args()
        .nth(1)
        .unwrap_or_else(|| ".mcp.json".into());
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
    let config = Config::parse(&text, &file, &mut |name| std::env::var(name).ok())?;
    let client = Client::connect(config).await?;
    print!("{}", client.report());
    client.close().await;
    Ok(())
}
