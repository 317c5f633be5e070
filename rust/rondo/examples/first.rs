// examples/first.rs — a capture, its replays, one that breaks, and a model.
//
//   cargo run --example first [MODEL.onnx]
// SPDX-License-Identifier: Apache-2.0
use rondo::{Device, Session, Stream, Tensor};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

fn main() -> rondo::Result<()> {
    let device = Device::open("host")?;
    let stream = Stream::new(&device)?;
    let x = Arc::new(AtomicU32::new(0));
    let (one, two) = (x.clone(), x.clone());
    let graph = stream.capture(|stream| {
        stream.call("one", move || {
            one.fetch_add(1, Ordering::Relaxed);
        })?;
        stream.call("two", move || {
            two.store(two.load(Ordering::Relaxed) * 2, Ordering::Relaxed);
        })
    })?;
    for _ in 0..3 {
        graph.replay()?;
    }
    stream.synchronize()?;
    println!("x is {}", x.load(Ordering::Relaxed)); // ((0 + 1) * 2 + 1) * 2 ...

    if let Err(error) = stream.capture(|stream| stream.synchronize()) {
        println!("{error}"); // what broke it, where, and the cure
    }

    if let Some(path) = std::env::args().nth(1) {
        let bytes = std::fs::read(path).expect("the model can be read");
        let mut session = Session::parse(&bytes, &device)?;
        let image = Tensor::new(&[1, 3, 224, 224], &vec![0.5f32; 3 * 224 * 224])?;
        for _ in 0..3 {
            let outputs = session.run(&[("image", &image)])?;
            let logits = outputs[0].as_slice::<f32>().expect("f32");
            println!("{} numbers, replayed: {}", logits.len(), session.was_replayed());
        }
    }
    Ok(())
}
