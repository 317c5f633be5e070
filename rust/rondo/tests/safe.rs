//! The safe layer on the host.
// SPDX-License-Identifier: Apache-2.0
use rondo::{Device, Generator, Result, Session, Status, Stream, Tensor};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

fn model(name: &str) -> Vec<u8> {
    let path = format!("{}/../../tests/models/{name}/model.onnx", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(path).unwrap()
}

fn stream() -> Stream {
    Stream::new(&Device::open("host").unwrap()).unwrap()
}

fn counter(stream: &Stream) -> (Arc<AtomicU32>, impl Fn() -> Result<()> + '_) {
    let count = Arc::new(AtomicU32::new(0));
    let shared = count.clone();
    (count, move || {
        let seen = shared.clone();
        stream.call("count", move || {
            seen.fetch_add(1, Ordering::Relaxed);
        })
    })
}

#[test]
fn statuses_say_what_is_wrong() {
    let error = Device::open("toaster").err().unwrap();
    assert_eq!(error.status, Status::Invalid);
    assert!(error.to_string().contains("toaster"));
    assert!(rondo::version().starts_with("0."));
}

#[test]
fn recorded_then_replayed() {
    let stream = stream();
    let (count, put) = counter(&stream);
    let x = stream.buffer::<u32>(8).unwrap();
    let graph = stream
        .capture(|stream| {
            stream.fill(&x, 7)?;
            put()
        })
        .unwrap();
    stream.synchronize().unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 0);
    assert_eq!(graph.node_count().unwrap(), 2);
    graph.upload().unwrap();
    for _ in 0..3 {
        graph.replay().unwrap();
    }
    assert_eq!(stream.read(&x).unwrap(), [7; 8]);
    assert_eq!(count.load(Ordering::Relaxed), 3);
}

#[test]
fn a_graph_keeps_what_it_needs() {
    let (stream, y) = (stream(), 0);
    let y = {
        let _ = y;
        stream.buffer::<f32>(1000).unwrap()
    };
    let graph = {
        let x = stream.buffer::<f32>(1000).unwrap();
        stream.write(&x, &vec![2.5; 1000]).unwrap();
        stream.capture(|stream| stream.copy(&y, &x)).unwrap()
    };
    let junk: Vec<_> = (0..50).map(|_| stream.buffer::<f32>(1000).unwrap()).collect();
    graph.replay().unwrap();
    drop(junk);
    assert_eq!(stream.read(&y).unwrap(), vec![2.5; 1000]);
    drop(stream);
    graph.replay().unwrap();
}

#[test]
fn captures_that_break_are_explained_and_leave_nothing() {
    let stream = stream();
    let (count, put) = counter(&stream);
    for _ in 0..2 {
        let broken = stream.capture(|stream| {
            put()?;
            stream.synchronize()
        });
        let report = broken.err().unwrap().report.unwrap();
        assert_eq!((report.cause.as_str(), report.call.as_str()), ("SYNCHRONIZE", "rondo_stream_synchronize"));
        assert!(report.cure.contains("events") && report.text.contains("cure:"));
        let unseen = stream.capture(|stream| {
            let _ = stream.synchronize();
            Ok(())
        });
        assert!(unseen.err().unwrap().report.is_some());
        let panic = catch_unwind(AssertUnwindSafe(|| {
            let _ = stream.capture(|_| {
                put().unwrap();
                panic!("mine")
            });
        }));
        assert_eq!(*panic.unwrap_err().downcast::<&str>().unwrap(), "mine");
        let mine = stream.capture(|_| Device::open("toaster").map(drop)).err().unwrap();
        assert!(mine.status == Status::Invalid && mine.report.is_none());
        let graph = stream.capture(|_| put()).unwrap();
        graph.replay().unwrap();
        stream.synchronize().unwrap();
    }
    assert_eq!(count.load(Ordering::Relaxed), 2);
}

#[test]
fn panics_of_closures_come_out_of_the_wait() {
    let stream = stream();
    stream.call("fail", || panic!("boom")).unwrap();
    let panic = catch_unwind(AssertUnwindSafe(|| stream.synchronize()));
    assert_eq!(*panic.unwrap_err().downcast::<&str>().unwrap(), "boom");
    stream.synchronize().unwrap();
}

#[test]
fn what_types_cannot_hold_to_is_refused() {
    let (one, two) = (stream(), stream());
    let (x, y) = (one.buffer::<f32>(4).unwrap(), one.buffer::<f32>(5).unwrap());
    for wrong in [
        two.fill(&x, 0),
        two.read(&x).map(drop),
        one.copy(&x, &y),
        one.copy(&x, &x),
        one.write(&x, &[1.0; 5]),
        one.buffer::<f64>(usize::MAX).map(drop),
        one.capture(|stream| stream.buffer::<f32>(1).map(drop)).map(drop),
        one.capture(|stream| stream.capture(|_| Ok(())).map(drop)).map(drop),
    ] {
        assert_eq!(wrong.err().unwrap().status, Status::Invalid);
    }
    assert!(one.buffer::<f32>(0).unwrap().is_empty() && y.len() == 5);
    let empty = one.buffer::<f32>(0).unwrap();
    assert!(one.read(&empty).unwrap().is_empty());
}

#[test]
fn replays_draw_on() {
    let stream = stream();
    let x = stream.buffer::<f32>(8).unwrap();
    let draw = |graph: bool| {
        let generator = Generator::new(stream.device(), 42).unwrap();
        let recorded = stream.capture(|stream| generator.normal(stream, &x)).unwrap();
        (0..3)
            .map(|_| {
                if graph {
                    recorded.replay().unwrap();
                } else {
                    generator.normal(&stream, &x).unwrap();
                }
                stream.read(&x).unwrap()
            })
            .collect::<Vec<_>>()
    };
    let (eager, replayed) = (draw(false), draw(true));
    assert_eq!(eager, replayed);
    assert_ne!(eager[0], eager[1]);
}

#[test]
fn models_run_and_are_replayed() {
    let device = Device::open("host").unwrap();
    let mut session = Session::parse(&model("vit_mini"), &device).unwrap();
    assert_eq!(session.inputs()[0].shape, Some(vec![None, Some(3), Some(12), Some(12)]));
    let x = Tensor::new(&[2, 3, 12, 12], &vec![0.25f32; 864]).unwrap();
    let first = session.run(&[("x", &x)]).unwrap();
    assert!(!session.was_replayed());
    let (name, last) = std::thread::spawn(move || {
        session.run(&[("x", &x)]).unwrap();
        let last = session.run(&[("x", &x)]).unwrap();
        assert!(session.was_replayed());
        let wrong = session.run(&[]).err().unwrap();
        assert_eq!(wrong.status, Status::Invalid);
        (session.outputs()[0].name.clone(), last)
    })
    .join()
    .unwrap();
    assert_eq!(name, "y");
    assert_eq!(first[0].as_slice::<f32>().unwrap(), last[0].as_slice::<f32>().unwrap());
    assert!(first[0].as_slice::<i64>().is_none() && first[0].dtype() == "f32");
    assert_eq!(first[0].shape()[0], 2);
}

#[test]
fn strings_and_mistakes() {
    let device = Device::open("host").unwrap();
    let mut session = Session::parse(&model("flower_trees"), &device).unwrap();
    let x = Tensor::new(&[1, 4], &[5.1f32, 3.5, 1.4, 0.2]).unwrap();
    let outputs = session.run(&[("x", &x)]).unwrap();
    assert_eq!(outputs[0].strings().unwrap().len(), 1);
    assert!(outputs[1].strings().is_none());
    assert!(Tensor::new(&[2], &[1.0f32]).is_err() && Tensor::new(&[1; 9], &[1.0f32]).is_err());
    assert!(Tensor::new::<i64>(&[0, 3], &[]).unwrap().as_slice::<i64>().unwrap().is_empty());
    assert_eq!(Session::parse(&[0xff; 8], &device).err().unwrap().status, Status::BadData);
    // SAFETY: there is no such file.
    assert_eq!(unsafe { Session::load("no/such.onnx", &device) }.err().unwrap().status, Status::Unavailable);
}
