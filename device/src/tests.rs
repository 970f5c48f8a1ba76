//! Tests of what devices promise, on the host device and, where `NEARCAST_GPU_TESTS` is 1, on every CUDA device.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::probe::Probe;

/// Bytes of memory that the host device of the checks holds.
const HOST_BYTES: u64 = 64 << 20;

/// Defines each check as a test on the host, and the table of all.
macro_rules! checks {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                check::$name(&Device::host(HOST_BYTES));
            }
        )*

        /// Each wants a device of its own, for some lose it.
        const CHECKS: &[(&str, fn(&Device))] = &[$((stringify!($name), check::$name)),*];
    };
}

checks! {
    the_probe_answers
    words_go_round_by_a_kernel
    memory_is_zeroed
    copies_and_fills_stay_in_their_ranges
    nothing_at_all_is_fine
    contents_are_seen_after_the_work
    contents_ask_the_device_only_when_they_must
    a_stream_waits_for_an_event
    events_take_the_time
    another_thread_may_go_on
    too_much_memory_is_refused
    memory_comes_back
    an_unknown_kernel_is_an_error
    memory_fails_on_order_and_the_device_goes_on
    a_failed_launch_loses_the_device
    a_lost_device_answers_so
    wrong_ranges_panic
    foreign_things_panic
}

#[test]
fn gpu_devices_keep_the_same_promises() {
    if std::env::var("NEARCAST_GPU_TESTS").as_deref() != Ok("1") {
        return;
    }
    for (name, check) in CHECKS {
        for device in Device::all().expect("GPU tests are asked for") {
            println!("{name} on {}", device.name());
            check(&device);
        }
    }
}

#[test]
fn a_machine_says_in_one_sentence_why_it_has_no_device() {
    match Device::all() {
        Ok(devices) => assert!(!devices.is_empty()),
        Err(error) => {
            let sentence = error.to_string();
            assert!(!sentence.is_empty() && !sentence.contains('\n'), "{sentence}");
            match error {
                DriverError::NoDriver { reason } => assert!(reason.contains("libcuda"), "{reason}"),
                DriverError::NotBuilt
                | DriverError::NoDevice
                | DriverError::DriverTooOld { .. }
                | DriverError::DeviceTooOld { .. } => {}
                DriverError::OutOfMemory { .. }
                | DriverError::OutOfPinnedMemory { .. }
                | DriverError::DeviceLost { .. }
                | DriverError::LaunchFailed { .. }
                | DriverError::Other { .. } => panic!("that is no reason to have none: {sentence}"),
            }
        }
    }
}

#[test]
fn the_host_device_counts_its_memory() {
    let device = Device::host(1024);
    let first = device.buffer::<u32>(100).unwrap();
    assert_eq!(device.memory().unwrap(), Memory { free_bytes: 512, total_bytes: 1024 });
    assert_eq!(
        device.buffer::<u8>(513).unwrap_err(),
        DriverError::OutOfMemory { requested_bytes: 513, free_bytes: 512 }
    );
    drop(first);
    assert_eq!(device.memory().unwrap().free_bytes, 1024);
    device.buffer::<u8>(1024).unwrap();
}

#[test]
fn all_of_it_may_go_to_other_threads() {
    fn check<T: Send + Sync>() {}
    check::<Device>();
    check::<Stream>();
    check::<Event>();
    check::<Buffer<u32>>();
    check::<Pinned<u32>>();
    check::<module::LoadedModule>();
    check::<Kernel>();
}

/// The checks: each on a device of its own, of any kind.
mod check {
    use super::*;

    pub(crate) fn the_probe_answers(device: &Device) {
        Probe::check(device).unwrap();
    }

    pub(crate) fn words_go_round_by_a_kernel(device: &Device) {
        let probe = Probe::new(device).unwrap();
        let stream = device.stream(Priority::High).unwrap();
        for len in [0, 1, 31, 32, 33, 255, 256, 257, 5000, 300_000] {
            let input = buffer_of(&stream, &words(len));
            let output = device.buffer(len).unwrap();
            let odd = device.buffer(1).unwrap();
            probe.launch(&stream, &input, &output, &odd, 0xffff_fff0).unwrap();
            let expected: Vec<u32> = words(len).iter().map(|word| word.wrapping_add(0xffff_fff0)).collect();
            let odds = expected.iter().filter(|word| **word % 2 == 1).count();
            assert!(contents(&stream, &output) == expected, "{len} words");
            assert_eq!(contents(&stream, &odd), [u32::try_from(odds).unwrap()], "{len} words");
        }
    }

    pub(crate) fn memory_is_zeroed(device: &Device) {
        let stream = device.stream(Priority::Low).unwrap();
        for len in [1, 1000, 1001] {
            let used = device.buffer::<u32>(len).unwrap();
            stream.fill(&used, 0..len, u32::MAX).unwrap();
            assert_eq!(contents(&stream, &used), vec![u32::MAX; len]);
            drop(used);
            assert_eq!(contents(&stream, &device.buffer::<u32>(len).unwrap()), vec![0; len]);
            assert_eq!(device.pinned::<u32>(len).unwrap().slice().unwrap(), vec![0; len]);
        }
        // Not a whole number of words.
        assert_eq!(contents(&stream, &device.buffer::<[u8; 3]>(7).unwrap()), [[0; 3]; 7]);
    }

    pub(crate) fn copies_and_fills_stay_in_their_ranges(device: &Device) {
        let stream = device.stream(Priority::Low).unwrap();
        let buffer = buffer_of(&stream, &[1_u32, 2, 3, 4, 5, 6]);
        stream.fill(&buffer, 1..3, 9).unwrap();
        assert_eq!(contents(&stream, &buffer), [1, 9, 9, 4, 5, 6]);
        stream.copy(&buffer, 0..2, &buffer, 4).unwrap();
        assert_eq!(contents(&stream, &buffer), [1, 9, 9, 4, 1, 9]);
        let other = device.buffer::<u32>(4).unwrap();
        stream.copy(&buffer, 3..5, &other, 1).unwrap();
        assert_eq!(contents(&stream, &other), [0, 4, 1, 0]);
        let mut pinned = device.pinned::<u32>(3).unwrap();
        stream.download(&buffer, 3..5, &mut pinned, 1).unwrap();
        assert_eq!(pinned.slice().unwrap(), [0, 4, 1]);
        stream.upload(&mut pinned, 1..2, &other, 3).unwrap();
        assert_eq!(contents(&stream, &other), [0, 4, 1, 4]);
    }

    pub(crate) fn nothing_at_all_is_fine(device: &Device) {
        let stream = device.stream(Priority::Low).unwrap();
        let buffer = device.buffer::<u32>(0).unwrap();
        let mut pinned = device.pinned::<u32>(0).unwrap();
        assert!(buffer.is_empty() && buffer.bytes() == 0);
        stream.upload(&mut pinned, 0..0, &buffer, 0).unwrap();
        stream.download(&buffer, 0..0, &mut pinned, 0).unwrap();
        stream.copy(&buffer, 0..0, &buffer, 0).unwrap();
        stream.fill(&buffer, 0..0, 1).unwrap();
        assert!(pinned.slice().unwrap().is_empty());
        device.buffer::<[u8; 0]>(5).unwrap();
        device.pinned::<[u8; 0]>(5).unwrap();
    }

    pub(crate) fn contents_are_seen_after_the_work(device: &Device) {
        // Long enough that a device is still copying when the host looks.
        const LEN: usize = 4 << 20;
        let stream = device.stream(Priority::Low).unwrap();
        let buffer = device.buffer::<u32>(LEN).unwrap();
        let mut pinned = device.pinned::<u32>(LEN).unwrap();
        for value in 1..4 {
            stream.fill(&buffer, 0..LEN, value).unwrap();
            stream.download(&buffer, 0..LEN, &mut pinned, 0).unwrap();
            assert!(pinned.slice().unwrap().iter().all(|word| *word == value));
            pinned.slice_mut().unwrap().fill(value + 10);
            stream.upload(&mut pinned, 0..LEN, &buffer, 0).unwrap();
            // Overwritten only after the copy has read it.
            pinned.slice_mut().unwrap().fill(0);
            assert!(contents(&stream, &buffer).iter().all(|word| *word == value + 10));
        }
        // Dropped while the device reads it.
        stream.upload(&mut pinned, 0..LEN, &buffer, 0).unwrap();
        drop(pinned);
        drop(stream);
        drop(buffer);
    }

    pub(crate) fn contents_ask_the_device_only_when_they_must(device: &Device) {
        let stream = device.stream(Priority::Low).unwrap();
        let event = device.event().unwrap();
        let buffer = device.buffer::<u32>(1).unwrap();
        let mut pinned = device.pinned::<u32>(1).unwrap();

        stream.download(&buffer, 0..1, &mut pinned, 0).unwrap();
        stream.synchronize().unwrap();
        let mut told_by_stream = pinned;

        let mut told_by_event = device.pinned::<u32>(1).unwrap();
        stream.download(&buffer, 0..1, &mut told_by_event, 0).unwrap();
        stream.record(&event).unwrap();
        event.synchronize().unwrap();
        assert!(event.done().unwrap());

        let mut untold = device.pinned::<u32>(1).unwrap();
        stream.download(&buffer, 0..1, &mut untold, 0).unwrap();

        device.inject(Fault::DeviceLost, 1);
        assert_eq!(told_by_stream.slice().unwrap(), [0]);
        assert_eq!(told_by_event.slice().unwrap(), [0]);
        assert!(is_lost(&untold.slice()));
        assert!(is_lost(&untold.slice()));
    }

    pub(crate) fn a_stream_waits_for_an_event(device: &Device) {
        const LEN: usize = 1 << 20;
        let (first, second) = (device.stream(Priority::Low).unwrap(), device.stream(Priority::High).unwrap());
        let event = device.event().unwrap();
        let buffer = device.buffer::<u32>(LEN).unwrap();
        second.wait(&event).unwrap();
        for value in 1..20 {
            first.fill(&buffer, 0..LEN, value).unwrap();
            first.record(&event).unwrap();
            second.wait(&event).unwrap();
            assert!(contents(&second, &buffer).iter().all(|word| *word == value));
        }
    }

    pub(crate) fn events_take_the_time(device: &Device) {
        let stream = device.stream(Priority::Low).unwrap();
        let (before, after) = (device.event().unwrap(), device.event().unwrap());
        assert!(before.done().unwrap());
        assert!(matches!(after.elapsed_since(&before), Err(DriverError::Other { .. })));
        let buffer = device.buffer::<u32>(1 << 20).unwrap();
        stream.record(&before).unwrap();
        stream.fill(&buffer, 0..1 << 20, 1).unwrap();
        stream.record(&after).unwrap();
        assert!(after.elapsed_since(&before).unwrap() > std::time::Duration::ZERO);
        assert!(after.done().unwrap() && before.done().unwrap());
    }

    pub(crate) fn another_thread_may_go_on(device: &Device) {
        let stream = device.stream(Priority::Low).unwrap();
        let buffer = buffer_of(&stream, &words(1000));
        let probe = Probe::new(device).unwrap();
        let sums = std::thread::spawn({
            let device = device.clone();
            move || {
                let output = device.buffer(1000).unwrap();
                let odd = device.buffer(1).unwrap();
                probe.launch(&stream, &buffer, &output, &odd, 1).unwrap();
                contents(&stream, &output)
            }
        });
        let expected: Vec<u32> = words(1000).iter().map(|word| word.wrapping_add(1)).collect();
        assert_eq!(sums.join().unwrap(), expected);
    }

    pub(crate) fn too_much_memory_is_refused(device: &Device) {
        let memory = device.memory().unwrap();
        assert!(memory.free_bytes <= memory.total_bytes);
        let len = usize::try_from(memory.total_bytes + (1 << 30)).unwrap();
        match device.buffer::<u8>(len) {
            Err(DriverError::OutOfMemory { requested_bytes, free_bytes }) => {
                assert_eq!(requested_bytes, len as u64);
                assert!(free_bytes > 0 && free_bytes <= memory.total_bytes);
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(device.buffer::<u64>(usize::MAX), Err(DriverError::OutOfMemory { .. })));
        Probe::check(device).unwrap();
    }

    pub(crate) fn memory_comes_back(device: &Device) {
        // All together more than the host device has, and than what a CUDA device may keep back.
        for _ in 0..20 {
            let buffer = device.buffer::<u32>(8 << 20).unwrap();
            assert_eq!(buffer.bytes(), 32 << 20);
        }
    }

    pub(crate) fn an_unknown_kernel_is_an_error(device: &Device) {
        let module = device.module(&kernels::PROBE).unwrap();
        assert!(matches!(module.kernel("nothing"), Err(DriverError::Other { .. })));
        assert!(module.kernel("probe").is_ok());
    }

    pub(crate) fn memory_fails_on_order_and_the_device_goes_on(device: &Device) {
        device.inject(Fault::OutOfMemory, 3);
        let _first = device.buffer::<u32>(10).unwrap();
        let _second = device.buffer::<u32>(10).unwrap();
        match device.buffer::<u32>(10) {
            Err(DriverError::OutOfMemory { requested_bytes, free_bytes }) => {
                assert_eq!(requested_bytes, 40);
                assert!(free_bytes > 0);
            }
            other => panic!("{other:?}"),
        }
        Probe::check(device).unwrap();
    }

    pub(crate) fn a_failed_launch_loses_the_device(device: &Device) {
        let probe = Probe::new(device).unwrap();
        let stream = device.stream(Priority::Low).unwrap();
        let buffers = [(); 3].map(|()| device.buffer::<u32>(1).unwrap());
        let launch = || probe.launch(&stream, &buffers[0], &buffers[1], &buffers[2], 1);
        device.inject(Fault::LaunchFailed, 2);
        launch().unwrap();
        assert!(matches!(launch(), Err(DriverError::LaunchFailed { .. })));
        assert!(is_lost(&launch()));
        assert!(is_lost(&stream.synchronize()));
        assert!(is_lost(&device.buffer::<u32>(1)));
    }

    pub(crate) fn a_lost_device_answers_so(device: &Device) {
        let stream = device.stream(Priority::Low).unwrap();
        let event = device.event().unwrap();
        let module = device.module(&kernels::PROBE).unwrap();
        let buffer = device.buffer::<u32>(1).unwrap();
        let mut pinned = device.pinned::<u32>(1).unwrap();
        device.inject(Fault::DeviceLost, 2);
        stream.record(&event).unwrap();
        assert!(is_lost(&event.done()));
        assert!(is_lost(&stream.upload(&mut pinned, 0..1, &buffer, 0)));
        assert!(is_lost(&stream.download(&buffer, 0..1, &mut pinned, 0)));
        assert!(is_lost(&stream.fill(&buffer, 0..1, 1)));
        assert!(is_lost(&stream.record(&event)));
        assert!(is_lost(&stream.wait(&event)));
        assert!(is_lost(&event.elapsed_since(&event)));
        assert!(is_lost(&module.kernel("probe")));
        assert!(is_lost(&device.memory()));
        assert!(is_lost(&device.stream(Priority::High)));
        assert!(is_lost(&device.pinned::<u32>(1)));
        assert!(is_lost(&device.event()));
        assert!(is_lost(&Probe::check(device)));
    }

    pub(crate) fn wrong_ranges_panic(device: &Device) {
        let stream = device.stream(Priority::Low).unwrap();
        let buffer = device.buffer::<u32>(4).unwrap();
        let mut pinned = device.pinned::<u32>(4).unwrap();
        assert!(panics(|| stream.upload(&mut pinned, 0..5, &buffer, 0)));
        assert!(panics(|| stream.upload(&mut pinned, 0..2, &buffer, 3)));
        assert!(panics(|| stream.download(&buffer, 3..5, &mut pinned, 0)));
        assert!(panics(|| stream.download(&buffer, 0..4, &mut pinned, 1)));
        assert!(panics(|| stream.copy(&buffer, 0..2, &buffer, 1)));
        assert!(panics(|| stream.fill(&buffer, 4..5, 0)));
        #[expect(clippy::reversed_empty_ranges, reason = "that is the mistake")]
        let reversed = 3..2;
        assert!(panics(|| stream.fill(&buffer, reversed, 0)));
        stream.copy(&buffer, 0..2, &buffer, 2).unwrap();
        stream.fill(&buffer, 4..4, 0).unwrap();
    }

    pub(crate) fn foreign_things_panic(device: &Device) {
        let other = Device::host(HOST_BYTES);
        let stream = device.stream(Priority::Low).unwrap();
        let (own, foreign) = (device.buffer::<u32>(1).unwrap(), other.buffer::<u32>(1).unwrap());
        let mut foreign_pinned = other.pinned::<u32>(1).unwrap();
        assert!(panics(|| stream.copy(&own, 0..1, &foreign, 0)));
        assert!(panics(|| stream.fill(&foreign, 0..1, 0)));
        assert!(panics(|| stream.upload(&mut foreign_pinned, 0..1, &own, 0)));
        assert!(panics(|| stream.record(&other.event().unwrap())));
        assert!(panics(|| Probe::new(&other).unwrap().launch(&stream, &own, &own, &own, 1)));
        assert!(panics(|| Probe::new(device).unwrap().launch(&stream, &own, &own, &foreign, 1)));
    }
}

/// Words without a pattern that a shifted copy would keep.
fn words(len: usize) -> Vec<u32> {
    (0..u32::try_from(len).unwrap()).map(|index| index.wrapping_mul(0x9e37_79b9) >> 3).collect()
}

fn buffer_of(stream: &Stream, values: &[u32]) -> Buffer<u32> {
    let mut pinned = stream.device().pinned::<u32>(values.len()).unwrap();
    pinned.slice_mut().unwrap().copy_from_slice(values);
    let buffer = stream.device().buffer(values.len()).unwrap();
    stream.upload(&mut pinned, 0..values.len(), &buffer, 0).unwrap();
    buffer
}

fn contents<T: bytemuck::Pod>(stream: &Stream, buffer: &Buffer<T>) -> Vec<T> {
    let mut pinned = stream.device().pinned::<T>(buffer.len()).unwrap();
    stream.download(buffer, 0..buffer.len(), &mut pinned, 0).unwrap();
    pinned.slice().unwrap().to_vec()
}

fn is_lost<T>(answer: &Result<T, DriverError>) -> bool {
    matches!(answer, Err(DriverError::DeviceLost { .. }))
}

fn panics<T>(action: impl FnOnce() -> T) -> bool {
    catch_unwind(AssertUnwindSafe(action)).is_err()
}

#[test]
fn a_source_that_the_compiler_refuses_is_told_with_its_words() {
    let device = Device::host(1 << 20);
    let source = |text| Source {
        name: "wrong.cu",
        text,
        headers: &[("given.cuh", "#define GIVEN 1\n")],
        defines: &["SAID"],
    };
    let refused =
        device.compile(&source("#include \"given.cuh\"\nthis is no kernel;\n")).expect_err("it is no source");
    let CompileError::Refused { name, log } = &refused else { panic!("{refused}") };
    assert_eq!(name, "wrong.cu");
    assert!(log.contains("wrong.cu:2:"), "{log}");
    // Headers and what is defined are there, and a module without kernels has none.
    let module = device.compile(&source(
        "#include \"given.cuh\"\n#ifndef SAID\n#error\n#endif\nstatic_assert(GIVEN == 1, \"\");\n",
    ));
    assert!(module.expect("it is a source").kernel("probe").is_err());
    device.inject(Fault::NoCompiler, 1);
    assert!(matches!(device.compile(&source("")), Err(CompileError::NoCompiler { .. })));
}
