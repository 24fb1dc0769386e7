"""What `ptbuild bench` measures: WORKLOADS, each with a function that makes the work from torch and a device.

Inputs come from one generator of uniform numbers, whose bytes do not depend on how torch was built, and a result is
compared with that of the other torch: it is that of the first call.
"""
import math


class Workload:
    def __init__(self, name, make, tolerance, devices):
        self.name, self.make, self.tolerance, self.devices = name, make, tolerance, devices


WORKLOADS = []
BOTH, CPU = ("cpu", "cuda"), ("cpu",)


def workload(name, tolerance=None, devices=BOTH):
    """`tolerance`: that two right results may differ by, of their magnitude; None: by the type of their numbers."""
    def add(make):
        def prepared(torch, device):
            torch.manual_seed(0)
            return make(Kit(torch, device))
        WORKLOADS.append(Workload(name, prepared, tolerance, devices))
        return make
    return add


class Kit:
    def __init__(self, torch, device):
        self.torch, self.nn, self.f, self.device = torch, torch.nn, torch.nn.functional, device

    def rand(self, *shape, dtype=None):
        return (self.torch.rand(*shape) * 2 - 1).to(self.device, dtype or self.torch.float32)

    def whole(self, high, *shape):
        return self.torch.randint(0, high, shape).to(self.device)

    def quiet(self, module):
        return module.to(self.device).eval().requires_grad_(False)


# ---- products ----

def product(name, left, right, dtype="float32", tolerance=None):
    @workload(name, tolerance)
    def make(k):
        a, b = (k.rand(*shape, dtype=getattr(k.torch, dtype)) for shape in (left, right))
        return lambda: a @ b


product("gemm fp32 512", (512, 512), (512, 512))
product("gemm fp32 1536", (1536, 1536), (1536, 1536))
product("gemm fp32 odd 511x513x509", (511, 513), (513, 509))
product("gemm fp32 tall 16384x64x64", (16384, 64), (64, 64))
product("gemm fp64 1024", (1024, 1024), (1024, 1024), "float64")
product("gemm bf16 512", (512, 512), (512, 512), "bfloat16")
product("linear 32x4096x4096", (32, 4096), (4096, 4096))
product("gemv fp32 4096", (4096, 4096), (4096,))
product("gemv fp64 2048", (2048, 2048), (2048,), "float64")
product("gemv bf16 4096", (4096, 4096), (4096,), "bfloat16")
product("bmm fp32 256x64", (256, 64, 64), (256, 64, 64))
product("bmm fp32 odd 100x33x65", (100, 33, 65), (100, 65, 37))


@workload("gemm complex64 512")
def _(k):
    a = k.torch.complex(k.rand(512, 512), k.rand(512, 512))
    return lambda: a @ a


@workload("gemm int8 512")
def _(k):
    a, b = ((k.whole(255, 512, 512) - 127).to(k.torch.int8) for _ in range(2))
    return lambda: k.torch._int_mm(a, b)


# ---- convolutions ----

def convolution(name, image, kernel, **how):
    @workload(name)
    def make(k):
        x, w = k.rand(*image), k.rand(*kernel)
        conv = k.f.conv1d if len(image) == 3 else k.f.conv2d
        return lambda: conv(x, w, **how)


convolution("conv 3x3", (8, 64, 56, 56), (64, 64, 3, 3), padding=1)
convolution("conv 1x1", (8, 256, 28, 28), (64, 256, 1, 1))
convolution("conv 7x7 stride 2", (2, 3, 224, 224), (64, 3, 7, 7), padding=3, stride=2)
convolution("conv depthwise", (8, 64, 56, 56), (64, 1, 3, 3), padding=1, groups=64)
convolution("conv 1d", (16, 64, 1000), (64, 64, 5))


# ---- parts of networks ----

def attention(name, causal):
    @workload(name)
    def make(k):
        q, key, v = (k.rand(4, 8, 256, 64) for _ in range(3))
        return lambda: k.f.scaled_dot_product_attention(q, key, v, is_causal=causal)


attention("attention", False)
attention("attention causal", True)


def rows(name, work):
    @workload(name)
    def make(k):
        x = k.rand(512, 1024)
        return lambda: work(k, x)


rows("layer norm", lambda k, x: k.f.layer_norm(x, (1024,)))
rows("softmax", lambda k, x: x.softmax(-1))
rows("gelu", lambda k, x: k.f.gelu(x))
rows("sum of rows", lambda k, x: x.sum(1))
rows("maximum of rows", lambda k, x: x.max(1).values)
rows("cumulative sum", lambda k, x: x.cumsum(1))
rows("transposed copy", lambda k, x: x.t().contiguous())


@workload("batch norm training")
def _(k):
    norm, x = k.nn.BatchNorm2d(64).to(k.device), k.rand(16, 64, 32, 32)
    return lambda: norm(x)


@workload("lstm")
def _(k):
    net, x = k.quiet(k.nn.LSTM(128, 256)), k.rand(64, 16, 128)
    return lambda: net(x)[0]


# ---- numbers in a row ----

def million(name, work):
    @workload(name)
    def make(k):
        x = k.rand(1 << 20)
        return lambda: work(k, x)


million("exp 1M", lambda k, x: x.exp())
million("add 1M", lambda k, x: x + x)
million("sum 1M", lambda k, x: x.sum())
million("sort 1M", lambda k, x: x.sort().values)
million("topk 1M", lambda k, x: x.topk(1000).values)


@workload("64 small additions")
def _(k):
    small = [k.rand(16) for _ in range(64)]

    def add():
        total = small[0]
        for x in small:
            total = total + x
        return total
    return add


@workload("index select")
def _(k):
    x, index = k.rand(1 << 20), k.whole(1 << 20, 1 << 18)
    return lambda: x[index]


@workload("scatter add")
def _(k):
    x, index = k.rand(1 << 18), k.whole(1 << 12, 1 << 18)
    return lambda: k.torch.zeros(1 << 12, device=k.device).scatter_add_(0, index, x)


@workload("embedding bag")
def _(k):
    table, bags = k.rand(50000, 64), k.whole(50000, 512, 20)
    return lambda: k.f.embedding_bag(bags, table, mode="sum")


# ---- Fourier transforms, linear systems ----

@workload("fft 64x4096")
def _(k):
    x = k.rand(64, 4096)
    return lambda: k.torch.fft.rfft(x)


@workload("fft odd 64x1009")
def _(k):
    x = k.rand(64, 1009)
    return lambda: k.torch.fft.rfft(x)


@workload("fft2 16x256x256")
def _(k):
    x = k.rand(16, 256, 256)
    return lambda: k.torch.fft.fft2(x)


def system(k, n):
    return k.rand(n, n) + n * k.torch.eye(n, device=k.device)


@workload("solve 512")
def _(k):
    a, b = system(k, 512), k.rand(512, 512)
    return lambda: k.torch.linalg.solve(a, b)


@workload("cholesky 512")
def _(k):
    a = k.rand(512, 512)
    a = a @ a.t() + 512 * k.torch.eye(512, device=k.device)
    return lambda: k.torch.linalg.cholesky(a)


@workload("eigh 256")
def _(k):
    a = k.rand(256, 256)
    a = a + a.t()
    return lambda: k.torch.linalg.eigh(a)[0]  # vectors may have either sign


@workload("svd 128")
def _(k):
    a = k.rand(128, 128)
    return lambda: k.torch.linalg.svd(a)[1]


# ---- networks ----

def bottleneck(nn, inside, width, stride):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.main = nn.Sequential(
                nn.Conv2d(inside, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
                nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
                nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width))
            self.side = nn.Identity()
            if stride > 1 or inside != 4 * width:
                self.side = nn.Sequential(nn.Conv2d(inside, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

        def forward(self, x):
            return (self.main(x) + self.side(x)).relu()
    return Block()


@workload("resnet50 batch 1", tolerance=1e-2)
def _(k):
    nn, blocks, inside = k.nn, [], 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(count):
            blocks.append(bottleneck(nn, inside, width, stride if i == 0 else 1))
            inside = 4 * width
    net = k.quiet(nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1), *blocks,
                                nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000)))
    x = k.rand(1, 3, 224, 224)
    return lambda: net(x)


def encoder(k, width, heads, layers):
    one = [k.nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True) for _ in range(layers)]
    return k.nn.Sequential(*one)


@workload("vit-b batch 1", tolerance=1e-2)
def _(k):
    nn = k.nn
    patches, layers, head = (k.quiet(m) for m in (nn.Conv2d(3, 768, 16, 16), encoder(k, 768, 12, 12), nn.Linear(768, 1000)))
    x, place = k.rand(1, 3, 224, 224), k.rand(1, 196, 768)

    def infer():
        y = patches(x).flatten(2).transpose(1, 2) + place
        return head(layers(y).mean(1))
    return infer


@workload("bert-base layers", tolerance=1e-2)
def _(k):
    layers, x = k.quiet(encoder(k, 768, 12, 2)), k.rand(4, 128, 768)
    return lambda: layers(x)


class Llm:
    """A small language model with what large ones have: RMS norm, rotary positions, SwiGLU, a cache of keys and values."""
    WIDTH, HEADS, LAYERS, WORDS, INNER = 512, 8, 4, 32000, 1408

    def __init__(self, k):
        def weights(*shape):
            return k.rand(*shape) * math.sqrt(3.0 / shape[-1])
        self.k, self.words = k, k.rand(self.WORDS, self.WIDTH)
        self.layers = [{"qkv": weights(3 * self.WIDTH, self.WIDTH), "out": weights(self.WIDTH, self.WIDTH), "up": weights(2 * self.INNER, self.WIDTH),
                        "down": weights(self.WIDTH, self.INNER)} for _ in range(self.LAYERS)]

    def norm(self, x):
        return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt()

    def turned(self, x, first):
        half = x.shape[-1] // 2
        rates = 10000.0 ** (-self.k.torch.arange(half, device=x.device) / half)
        angles = self.k.torch.arange(first, first + x.shape[-2], device=x.device)[:, None] * rates
        a, b = x[..., :half], x[..., half:]
        return self.k.torch.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1)

    def step(self, words, cache):
        """The scores of the next word behind `words`; the cache, as it is then, is the second result."""
        f, after = self.k.f, []
        x = self.words[words][None]
        for i, w in enumerate(self.layers):
            q, key, v = f.linear(self.norm(x), w["qkv"]).view(1, len(words), 3, self.HEADS, -1).permute(2, 0, 3, 1, 4)
            before = cache[i] if cache else None
            first = before[0].shape[2] if before else 0
            q, key = self.turned(q, first), self.turned(key, first)
            if before:
                key, v = self.k.torch.cat([before[0], key], 2), self.k.torch.cat([before[1], v], 2)
            after.append((key, v))
            y = f.scaled_dot_product_attention(q, key, v, is_causal=not before)
            x = x + f.linear(y.transpose(1, 2).reshape(1, len(words), -1), w["out"])
            gate, up = f.linear(self.norm(x), w["up"]).chunk(2, -1)
            x = x + f.linear(f.silu(gate) * up, w["down"])
        return f.linear(self.norm(x[:, -1]), self.words), after


@workload("llm prompt of 128 tokens", tolerance=1e-2)
def _(k):
    model, words = Llm(k), k.whole(Llm.WORDS, 128)

    def read():
        with k.torch.inference_mode():
            return model.step(words, None)[0]
    return read


@workload("llm next token", tolerance=1e-2)
def _(k):
    model, words = Llm(k), k.whole(Llm.WORDS, 256)
    with k.torch.inference_mode():
        cache = model.step(words, None)[1]

    def write():
        with k.torch.inference_mode():
            return model.step(words[:1], cache)[0]
    return write


def training(k, parameters, loss):
    optimizer = k.torch.optim.SGD(parameters, lr=1e-3)

    def step():
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        return value.detach()
    return step


@workload("gnn training step")
def _(k):
    nodes, edges = 20000, 100000
    x, source, target = k.rand(nodes, 64), k.whole(nodes, edges), k.whole(nodes, edges)
    first, second = (k.nn.Linear(64, n).to(k.device) for n in (64, 16))
    labels = k.whole(16, nodes)

    def gathered(y):
        return k.torch.zeros_like(y).index_add(0, target, y[source])

    return training(k, [*first.parameters(), *second.parameters()],
                    lambda: k.f.cross_entropy(gathered(second(gathered(first(x)).relu())), labels))


@workload("mlp training step")
def _(k):
    nn = k.nn
    net = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)).to(k.device)
    data, labels = k.rand(128, 512), k.whole(10, 128)
    return training(k, net.parameters(), lambda: k.f.cross_entropy(net(data), labels))


@workload("data loader", devices=CPU)
def _(k):
    from torch.utils.data import DataLoader, TensorDataset
    data = DataLoader(TensorDataset(k.rand(1024, 3, 32, 32), k.whole(10, 1024)), batch_size=64)
    return lambda: sum(x[0, 0, 0, 0] for x, _ in data)
