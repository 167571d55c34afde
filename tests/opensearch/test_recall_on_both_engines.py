"""Both engines find the same: the top tens of the product's own reader overlap."""

import os
import statistics
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from bench.retrieval_scores import scores
from bench.retrieval_sets import Collection, locomo
from instar.adapters.builtin.packaged_embeddings import PackagedEmbeddings

pytestmark = pytest.mark.opensearch

OVERLAP = 0.9
ROOT = Path(__file__).parents[2]
BENCH_DATA = Path(os.environ.get("BENCH_DATA", ROOT.parent / "shared")).resolve()

NOTES = {
    "MEMORY.md": """# What counts

- My sister Anna lives in Graz and works as a nurse in the night shift.
- The landlord is Mr Okafor; the rent of 1,250.00 EUR is due on the 3rd.
- I am allergic to penicillin and to hazelnuts.
- The spare key lies with the neighbours on the second floor, the Lindqvists.
- Passport C01X00T47 runs out on 2031-08-14.
- Coffee without sugar; tea with milk, never with lemon.
- Birthday of Anna: 14 March 1988. Birthday of Ben: 2 November 1990.
- The car's licence plate is G-417-KX, the tyres are 205/55 R16.
""",
    "memory/2031-05-04.md": """# Sunday, 4 May 2031

**Caroline:** We took the kayak out on the lake this morning, the wind was strong.
**Ben:** I would have come, but my knee still hurts after the marathon.
**Caroline:** Did you see the doctor about it?
**Ben:** Doctor Haddad says six weeks without running. I started swimming instead.
**Caroline:** Swimming is good. The pool in Eggenberg opens at six.
**Ben:** By the way, Melanie got the job at the museum, she starts in June!
**Caroline:** How wonderful. She painted that sunset over the lake for me last year.
**Ben:** Are you still going to Lisbon in September?
**Caroline:** Yes, the flights are booked: TP1274 on the 12th, back on the 20th.
**Ben:** Bring me some of the custard tarts.
""",
    "memory/2031-05-11.md": """# Sunday, 11 May 2031

**Caroline:** The kayak has a leak, I patched it with epoxy.
**Ben:** Epoxy holds in cold water? I thought you need a welded patch.
**Caroline:** It held for the whole tour to the waterfall.
**Ben:** My knee is better. Haddad lets me cycle again.
**Caroline:** Then come along to the vineyard on Saturday, by bicycle.
**Ben:** Melanie's contract at the museum is for two years only.
**Caroline:** Better than the gallery, they paid her late every month.
**Ben:** My mother moves into the flat in Leibnitz in July and needs help with the boxes.
""",
    "memory/haus.md": """# Haus und Garten

- Der Wasserzähler ist im Keller links hinter der Waschmaschine, Nummer 88-204-17.
- Müllabfuhr: Restmüll jeden zweiten Dienstag, Altpapier am ersten Freitag des Monats.
- Die Heizung wird im Oktober gewartet; der Monteur heißt Herr Grünwald.
- Äpfel und Zwetschken sind im September reif, die Nüsse erst Mitte Oktober.
- Für die Größe der Vorhänge im Schlafzimmer gilt: 140 cm breit, 220 cm hoch.
- Die Versicherung des Hauses läuft bei der Grazer Wechselseitigen, Polizze 4471-ZX.
- Im Gewächshaus stehen Tomaten, Paprika und zwei Reihen Basilikum.
- Der Schornsteinfeger kommt am 23. Juni zwischen acht und zehn Uhr.

## Rezepte

Für den Apfelstrudel: 300 g Mehl, 1 Ei, 3 EL Öl, Salz; der Teig ruht eine Stunde.
Die Füllung braucht 1,5 kg Äpfel, Rosinen, Zimt und geröstete Brösel.

Kürbiskernöl gehört zum Käferbohnensalat und niemals in die Pfanne.
""",
    "memory/中文.md": """# 我的生活

- 我住在杭州西湖附近，每天早上六点去跑步。
- 我的猫叫豆豆，今年三岁，喜欢吃三文鱼。
- 妈妈的生日是农历八月十五，她最爱吃月饼。
- 公司在滨江区，坐地铁一号线要四十分钟。
- 下个月我要去成都出差，顺便看大熊猫。
- 医生说我的血压有点高，要少吃盐。
- 我正在学弹钢琴，老师姓王，每周三上课。
- 书房的无线网络密码写在路由器背面。
""",
    "memory/work.md": """# Work notes

- `getUserName()` in src/users/profile.py raises KeyError for guests; see INST-4471.
- The staging database listens on 10.20.30.41:5433, the schema is `billing_v2`.
- node.js must stay at 20.11.1 until the C++ addon is rebuilt.
- Deploys run from the branch release/2031-06, tag v2.14.0-rc.3.
- The ratio that the auditors accepted was 37.759 percent.
- Ask Priya before changing anything in the Kubernetes cluster `eu-prod-7`.
- The stand-up is at 9:15, the retrospective every second Thursday.
- Error E-1042 means that the licence server at lic01.example.org is asleep.
- SHA of the bad build: 9f2c1e7ab.

```python
def total(prices: list[float]) -> float:
    return round(sum(prices), 2)
```
""",
    "memory/travel.md": """# Travel

| place | when | what |
| --- | --- | --- |
| Lisbon | September 2031 | with Caroline, hotel Alfama Belvedere |
| Kyoto | April 2030 | cherry blossoms, too many people |
| Tromsø | February 2029 | northern lights on the third night |
| São Paulo | August 2028 | conference, lost the suitcase |

The suitcase with the broken wheel was replaced by the airline after nine weeks.

In Kyoto the ryokan near Gion was the best place I ever slept in; the owner, Mrs Tanaka, taught me
how to fold a yukata.
""",
}
QUESTIONS = (
    "Where does my sister live?", "When is the rent due?", "What am I allergic to?",
    "passport C01X00T47", "When is Anna's birthday?", "Who has the spare key?",
    "What did Caroline do on the lake?", "Why can Ben not run?", "Who is Doctor Haddad?",
    "When does Melanie start at the museum?", "TP1274", "What did Ben start instead of running?",
    "Did the epoxy hold?", "Wann kommt der Schornsteinfeger?", "Wo ist der Wasserzähler?",
    "Wie groß sind die Vorhänge im Schlafzimmer?", "Wer wartet die Heizung?", "Polizze 4471-ZX",
    "Apfelstrudel Rezept", "Was wächst im Gewächshaus?", "我的猫叫什么名字？", "妈妈的生日是哪天",
    "我在哪里学钢琴", "大熊猫", "血压", "getUserName", "Which port does the staging database use?",
    "node.js version", "37.759", "eu-prod-7", "E-1042", "INST-4471", "release/2031-06",
    "northern lights", "Where did I lose the suitcase?", "ryokan in Kyoto", "Sao Paulo",
    "What is planned for September?", "Who?", "lake waterfall vineyard bicycle",
)  # fmt: skip


def overlap(first: Iterable[str], second: Iterable[str]) -> float:
    """The share of the longer list that both hold."""
    one, other = set(first), set(second)
    return len(one & other) / max(len(one), len(other), 1)


@pytest.mark.parametrize("embeddings", [None, PackagedEmbeddings], ids=["words", "hybrid"])
def test_top_tens_of_a_mixed_memory_overlap(remember, embeddings):
    model = embeddings() if embeddings else None
    both = [remember(engine, model) for engine in ("builtin", "opensearch")]
    for memory in both:
        for name, text in NOTES.items():
            memory.write(name, text)
        memory.level()

    shares = {each: overlap(*(memory.found(each) for memory in both)) for each in QUESTIONS}

    print(f"{model}: overlap {statistics.fmean(shares.values()):.3f}")
    assert statistics.fmean(shares.values()) >= OVERLAP, shares
    firsts = [both[0].found(each)[:1] == both[1].found(each)[:1] for each in QUESTIONS]
    assert statistics.fmean(firsts) >= OVERLAP


@pytest.fixture(scope="module")
def conversation() -> Collection:
    file = next(iter(BENCH_DATA.glob("**/locomo7.json")), None)
    if file is None:
        pytest.skip(f"no LoCoMo under {BENCH_DATA}: set BENCH_DATA")
    return locomo(file, file.parent / "audit-evidence.json", frozenset())[0]


def test_a_long_conversation_is_recalled_equally_well(remember, conversation):
    both = [remember(engine) for engine in ("builtin", "opensearch")]
    for memory in both:
        for name, text in conversation.files.items():
            memory.write(name, text)
        memory.level()
    shares, rows, seconds = [], ([], []), []

    for question in conversation.questions:
        found = []
        for memory, row in zip(both, rows, strict=True):
            start = time.perf_counter()
            hits = memory.search(question.text, limit=50)
            seconds.append(time.perf_counter() - start)
            row.append(scores(conversation.files, question, hits)["f_r@5"])
            found.append([hit.passage for hit in hits[:10]])
        shares.append(overlap(*found))

    builtin, opensearch = (statistics.fmean(row) for row in rows)
    print(
        f"{len(shares)} questions: overlap {statistics.fmean(shares):.3f}, f_r@5 {builtin:.3f} "
        f"builtin, {opensearch:.3f} opensearch, p50 {statistics.median(seconds[1::2]) * 1e3:.0f} ms"
    )
    assert statistics.fmean(shares) >= OVERLAP
    assert abs(builtin - opensearch) <= 0.01
