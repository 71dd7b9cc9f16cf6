"""Numbers that lines name: found in the manner of many programs, and not found where nothing of the kind is meant."""

from __future__ import annotations

import math

import pytest
from for_every import for_every, for_every_row
from hypothesis import given, settings
from hypothesis import strategies as st

from oarsman.status.log_metrics import known, told

MEGATRON = (
    " iteration       10/  500000 | consumed samples:          320 | elapsed time per iteration (ms): 500.1 |"
    " learning rate: 1.5E-04 | global batch size:    32 | lm loss: 1.0E+01 | loss scale: 65536.0 | grad norm: 1.2 |"
    " number of skipped iterations:   0 |"
)
TQDM = "Epoch 0:  50%|█████     | 50/100 [00:10<00:10,  5.00it/s, v_num=0, train_loss=0.123]"


@for_every_row(
    [
        # tf_cnn_benchmarks and Horovod's own benchmarks
        ("10\timages/sec: 12.3 +/- 0.1 (jitter = 0.4)\t7.9", {"step": 10, "images/sec": 12.3, "loss": 7.9}),
        ("1\timages/sec: 12.3 +/- 0.0 (jitter = 0.0)\tnan", {"step": 1, "images/sec": 12.3}),
        (
            "20\timages/sec: 2,412.5 +/- 0.1 (jitter = 0.4)\t7.901\t0.001\t0.002",
            {"step": 20, "images/sec": 2412.5, "loss": 7.901},
        ),
        ("total images/sec: 24.5", {"total images/sec": 24.5}),
        ("Iter #0: 123.4 img/sec per GPU", {"step": 0, "images/sec": 123.4}),
        ("Img/sec per GPU: 123.4 +-1.2", {"images/sec": 123.4}),
        ("Total img/sec on 4 GPU(s): 493.5 +-4.9", {"total images/sec": 493.5}),
        # Horovod's examples, TensorFlow, PyTorch, Keras
        ("Step #100\tLoss: 0.123", {"step": 100, "loss": 0.123}),
        ("INFO:tensorflow:loss = 0.123, step = 100 (0.5 sec)", {"loss": 0.123, "step": 100}),
        ("INFO:tensorflow:global_step/sec: 12.5", {"steps/sec": 12.5}),
        ("Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.134", {"epoch": 1, "step": 640, "loss": 2.134}),
        (
            "Epoch: [3][ 10/5005]\tTime  0.5 ( 0.9)\tLoss 7.0e+00 (7.1e+00)\tAcc@1  12.5 ( 11.1)",
            {"epoch": 3, "step": 10, "loss": 7.0, "acc@1": 12.5},
        ),
        (
            " 12/100 [==>.....] - ETA: 0s - loss: 0.3 - accuracy: 0.9 - val_loss: 1e-3",
            {"step": 12, "loss": 0.3, "accuracy": 0.9, "val_loss": 0.001},
        ),
        ("loss: 9.9\rloss: 0.7\rloss: 0.5\r", {"loss": 0.5}),
        ("loss: 9.9\b\b\b\b\b\b\b\b\bloss: 0.5", {"loss": 0.5}),
        ("\x1b[32mloss:\x1b[0m 0.5", {"loss": 0.5}),
        ("loss: tensor(0.1234, device='cuda:0', grad_fn=<NllLossBackward0>)", {"loss": 0.1234}),
        # Lightning, DeepSpeed, Megatron, Transformers
        (TQDM, {"epoch": 0, "step": 50, "iterations/sec": 5.0, "train_loss": 0.123}),
        ("[Rank 0] step=10, skipped=0, lr=[0.0001], mom=[(0.9, 0.999)]", {"step": 10, "lr": 0.0001}),
        (
            "epoch=0/micro_step=40/global_step=20, RunningAvgSamplesPerSec=12.3, MemAllocated=0.5GB",
            {"epoch": 0, "step": 20, "samples/sec": 12.3},
        ),
        (MEGATRON, {"step": 10, "lr": 0.00015, "lm_loss": 10.0, "grad_norm": 1.2}),
        ("{'loss': 0.5, 'learning_rate': 5e-05, 'epoch': 0.1}", {"loss": 0.5, "lr": 5e-05, "epoch": 0.1}),
        # lines of JSON
        ('{"loss":0.5,"step":12}', {"loss": 0.5, "step": 12}),
        (
            '{"time": "2026-01-01T08:00:00Z", "step": 1200, "train/loss": "2.5e-3", "lr": null}',
            {"step": 1200, "train_loss": 0.0025},
        ),
        # one's own
        ("loss=0.123", {"loss": 0.123}),
        ("Loss 0.123", {"loss": 0.123}),
        ("LOSS = -1.5", {"loss": -1.5}),
        ("loss=0.5,acc=0.9", {"loss": 0.5, "accuracy": 0.9}),
        ("loss: .5;", {"loss": 0.5}),
        ("train_loss 0.5", {"train_loss": 0.5}),
        ("Training loss: 0.5", {"train_loss": 0.5}),
        ("Validation Loss: 0.5 Accuracy: 93.5%", {"val_loss": 0.5, "accuracy": 0.935}),
        ("acc: 0.9", {"accuracy": 0.9}),
        ("top_1_accuracy: 0.7", {"top_1_accuracy": 0.7}),
        ("dice_loss: 0.25 loss_cls: 0.5", {"dice_loss": 0.25, "loss_cls": 0.5}),
        ("throughput: 1,234.5 samples/s", {"samples/sec": 1234.5}),
        ("Throughput (GFlop/s): 12.5", {"throughput": 12.5}),
        ("4096.5 tokens/s, step 3/10", {"tokens/sec": 4096.5, "step": 3}),
        ("samples_per_second: 12.5", {"samples/sec": 12.5}),
        ("ppl 12.5 loss 2.5", {"perplexity": 12.5, "loss": 2.5}),
        # only where it is
        ("Step 3: took 12 s", {"step": 3}),
        ("step 100", {"step": 100}),
        ("rank 0 step 12", {"step": 12}),
        ("[rank 3] iteration 12 done", {"step": 12}),
        ("iter 12/100", {"step": 12}),
        ("Step 1,200 of 5,000", {"step": 1200}),
        ("epoch 3", {"epoch": 3}),
        ("Starting epoch 3/10", {"epoch": 3}),
        ("batch 7 loss 0.5", {"step": 7, "loss": 0.5}),
        ("batch 7", {"step": 7}),
        ("perplexity: 12.5", {"perplexity": 12.5}),
        ("ppl: 12.5", {"perplexity": 12.5}),
        ("grad_norm: 1.2", {"grad_norm": 1.2}),
        ("learning rate: 0.1", {"lr": 0.1}),
        ("lr: 0.1", {"lr": 0.1}),
        ("throughput: 12.5", {"throughput": 12.5}),
        ("12.5 words per second", {"words/sec": 12.5}),
        # of several counters the best, of the same the first
        ("step: 5, iteration: 9", {"step": 5}),
        ("iteration: 9, step: 5", {"step": 5}),
        ("epoch 1 epoch 2", {"epoch": 1}),
        ("iter 3 batch 4 loss: 1.5 loss: 2.5", {"step": 3, "loss": 1.5}),
        ("batch 4 iter 3", {"step": 3}),
        # Chinese
        ("损失: 0.5 准确率：93%", {"loss": 0.5, "accuracy": 0.93}),
        ("第 12 步 训练损失=0.3", {"step": 12, "train_loss": 0.3}),
        ("第3轮，验证集准确率：0.9", {"epoch": 3, "val_accuracy": 0.9}),
        ("步数：12 损失值 0.5", {"step": 12, "loss": 0.5}),
    ]
)
def test_numbers_are_found_under_one_name_each(line: str, values: dict[str, float]) -> None:
    found = told(line)
    assert found is not None
    assert found.values == pytest.approx(values)
    assert found.step == values.get("step")


@for_every(
    [
        "",
        "hello",
        "rank 0 of 4 on pi-worker-0",
        "2026-01-01 08:00:00,123 INFO started",
        "exit code 1",
        "listening on 10.0.0.1:4567",
        "lr 10.0.0.1",
        "loss 1.2.3",
        "step 12:30:11",
        "step 2026-01-01",
        "step 0x1f",
        "/runs/loss=0.5/model.pt",
        "runs/loss=0.5",
        "./loss=0.5",
        "saved ~/step 100",
        "saved epoch=3-step=100.ckpt",
        "epoch=3.ckpt",
        "model-loss-0.5.pt",
        "C:\\loss=0.5",
        "packet loss: 3",
        "0% packet loss",
        "data loss: 1",
        "loss 3",
        "at a loss 12",
        "lossless: 1",
        "loss: 0.3/10",
        "loss_scale: 65536",
        "loss scale: 65536.0",
        "loss_fn=3",
        "--loss 0",
        "accept: 12",
        "account 12.5",
        "max step 100",
        "max_step=100",
        "total step: 100",
        "num_epochs=10",
        "warmup step 12",
        "steps: 100",
        "batch_size=32",
        "global batch size: 32",
        "batch size 32",
        "per iteration (ms): 500.1",
        "step: -1",
        "Step 1: download the data",
        "Step 2/5 : RUN make",
        "step 1 of the instructions that everybody should read",
        "[ 50/100] Building CXX object step.o",
        "Downloading: 45%|####    | 45/100 [00:12<00:15, 3.61it/s]",
        "45/100",
        "[100/1000]",
        "12.3 MB/s",
        "collected 12 items per second hand",
        "loss: nan",
        "loss: inf",
        "loss=-inf",
        "loss: 1e999",
        "loss:",
        "loss: x0.5",
        "loss: 0.5x",
        "loss: 0.$i",
        "iterations: 12",
        "epoch: 45%",
        "第一步：下载",
        "步骤 3",
        "UCX 1.15.0 version",
        "OMPI_MCA_btl_tcp_if_include=10.0.0.0/8",
        "LR parser 3",
        "std::lround 3",
    ]
)
def test_what_only_looks_like_it_is_left_alone(line: str) -> None:
    assert told(line) is None


@pytest.mark.parametrize(
    ("before", "name", "meant"),
    [
        ("", "loss", "loss"),
        ("the", "loss", "loss"),
        ("lm", "loss", "lm_loss"),
        ("", "val/acc", "val_accuracy"),
        ("", "validation_accuracy", "val_accuracy"),
        ("learning", "rate", "lr"),
        ("error", "rate", None),
        ("packet", "loss", None),
        ("", "ppo/loss", None),
        ("", "rank", None),
        ("time", "step", "step"),
        ("eval", "step", None),
    ],
)
def test_a_name_means_what_the_word_before_it_makes_of_it(before: str, name: str, meant: str | None) -> None:
    found = known(before, name)
    assert (found.name if found is not None else None) == meant


PIECES = st.sampled_from(
    [
        "loss",
        "step",
        "epoch",
        "acc",
        "lr",
        "images/sec",
        "it/s",
        "损失",
        "第",
        "步",
        ":",
        "=",
        " ",
        "/",
        "[",
        "]",
        "(",
        "%",
        "\t",
        "\r",
        "\b",
        "\x1b[",
        "1",
        "0.5",
        "1e-3",
        "nan",
        "-",
        ",",
        ".",
        "#",
        '"',
        "total",
        "٣",
        "²",
        "\x00",
        "\ud800",
    ]
)


@settings(deadline=None)
@given(st.one_of(st.text(), st.lists(PIECES, max_size=30).map("".join)))
def test_no_text_whatever_raises_and_every_value_can_be_shown(text: str) -> None:
    found = told(text)
    for name, value in found.values.items() if found is not None else ():
        assert name
        assert math.isfinite(value)


@settings(deadline=None)
@given(st.sampled_from(["loss: 1", "step ", "a_", "1,234", " ", "[1/", "((", "第1"]), st.integers(1000, 5000))
def test_what_stands_behind_the_limit_of_a_long_line_does_not_matter(piece: str, times: int) -> None:
    text = "loss: 0.5 " + piece * times
    assert told(text) == told(text[:2001])


def test_long_lines_are_read_up_to_a_limit_and_half_a_number_is_none() -> None:
    for filler, near, far in ((" ", 1990, 1991), ("((", 995, 996)):
        found = told(filler * near + "loss: 0.5" + filler * 1000)
        assert found is not None
        assert found.values == {"loss": 0.5}
        assert told(filler * far + "loss: 0.5" + filler * 1000) is None


def test_of_a_long_line_that_was_written_over_the_last_part_counts() -> None:
    found = told("loss: 9.9 " + "." * 3000 + "\rloss: 0.5")
    assert found is not None
    assert found.values == {"loss": 0.5}


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False, width=32), st.integers(0, 10**9))
def test_what_python_prints_is_read_back(value: float, step: int) -> None:
    found = told(f"step {step} loss: {value}")
    assert found is not None
    assert found.values == {"step": step, "loss": value}
