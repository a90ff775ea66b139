"""A table of customers in thirteen scripts: none of their values stays in a store that says `customers`."""

import csv
import html
import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import msgspec
import pytest
from msgspec.structs import replace

from replay_sessions import Click, SessionStore
from replay_sessions.__main__ import main
from replay_sessions.importers.remaining_values import RemainingValues

# By script: ten first names, ten family names, ten streets and ten cities.
PEOPLE = {
    "latin": (
        "Anneliese Jürgen Zoë José Łukasz Søren Agnès Björn Chloé Dušan",
        "Müller Lefèvre Økland García Nowak Šimić Åström Brânză Çelik Weiß",
        "Mühlenweg Königsallee Rue-Pépin Ørnevej Świętojańska Calle-Niño Bäckgatan Strada-Bălan Gülsokak Hauptstraße",
        "Köln Évreux Tromsø Cádiz Łódź Šibenik Örebro Bistrița İzmir Gießen",
    ),
    "cyrillic": (
        "Анна Сергей Дмитрий Фёдор Ольга Николай Юлия Татьяна Алёна Андрей",
        "Иванова Петров Сидоров Кузнецов Смирнова Зайцев Воробьёва Соловьёва Чайкина Майоров",
        "Лесная Садовая Тверская Арбатская Невская Морская Ленинская Полевая Речная Зелёная",
        "Москва Казань Самара Тула Омск Пермь Королёв Калуга Нижнекамск Выборг",
    ),
    "greek": (
        "Γιώργος Μαρία Ελένη Νίκος Κώστας Δημήτρης Σοφία Χρήστος Αθηνά Ιωάννης",
        "Παπαδόπουλος Νικολάου Γεωργίου Καραγιάννης Οικονόμου Βασιλείου Δημητρίου Μακρής Αντωνίου Λάμπρου",
        "Ερμού Πανεπιστημίου Σταδίου Ακαδημίας Σόλωνος Μητροπόλεως Αιόλου Αθηνάς Πατησίων Κηφισίας",
        "Αθήνα Πάτρα Βόλος Λάρισα Ηράκλειο Χανιά Ιωάννινα Καβάλα Ρόδος Κέρκυρα",
    ),
    "korean": (
        "민수 지영 서연 현우 은주 도윤 하은 준호 수빈 영희",
        "김 이 박 최 정 강 조 윤 장 임",
        "테헤란로 강남대로 세종대로 을지로 종로길 퇴계로 한강로 양재대로 남부순환로 올림픽로",
        "서울시 부산시 대구시 인천시 광주시 대전시 울산시 수원시 창원시 고양시",
    ),
    "chinese": (
        "建国 晓明 志强 雅婷 俊杰 淑芬 家豪 怡君 文博 思远",
        "王 李 张 刘 陈 杨 赵 黄 周 吴",
        "南京西路 长安大街 中山北路 解放大道 人民东路 建设三街 和平里路 延安中路 淮海中路 复兴南路",
        "上海市 北京市 广州市 武汉市 成都市 杭州市 西安市 南京市 重庆市 天津市",
    ),
    "japanese": (
        "太郎 花子 さくら 健一 ゆうこ 大輔 みがき 直樹 エリカ 裕子",
        "佐藤 鈴木 高橋 田中 渡辺 伊藤 山本 中村 小林 加藤",
        "銀座三丁目 桜木町二丁目 神田小川町 南青山五丁目 北新地一丁目 本郷四丁目 梅田二丁目 天神三丁目 栄四丁目 大通西",
        "横浜市 大阪市 名古屋市 札幌市 福岡市 神戸市 京都市 川崎市 仙台市 広島市",
    ),
    "thai": (
        "สมชาย สมหญิง ปรีชา วิไล อนันต์ กนกวรรณ ธนากร พิมพ์ใจ สุรชัย น้ำฝน",
        "ใจดี รักไทย ศรีสุข ทองคำ วงศ์ใหญ่ แก้วมณี บุญมา พูนสุข สายทอง จันทร์เพ็ญ",
        "ถนนสุขุมวิท ถนนสีลม ถนนพระรามเก้า ถนนเพชรบุรี ถนนรัชดา ถนนลาดพร้าว ถนนพหลโยธิน ถนนสาทร ถนนราชดำริ ถนนเจริญกรุง",
        "กรุงเทพ เชียงใหม่ ขอนแก่น ภูเก็ต นครราชสีมา อุดรธานี ชลบุรี สงขลา ลำปาง อยุธยา",
    ),
    "hindi": (
        "अनिता राम सुनीता विजय पूजा संजय दीपिका अमित नेहा ज़ोया",
        "शर्मा वर्मा गुप्ता मिश्रा सिंह यादव चौधरी अग्रवाल तिवारी पाण्डेय",
        "गाँधीमार्ग नेहरूनगर स्टेशनरोड मन्दिरगली राजपथ टैगोरमार्ग पटेलचौक शास्त्रीनगर किलारोड बाज़ारगली",
        "दिल्ली मुंबई जयपुर लखनऊ कानपुर भोपाल पटना आगरा वाराणसी इंदौर",
    ),
    "bengali": (
        "রহিম করিম সুমাইয়া ফারহানা অনির্বাণ শ্রেয়া তানভীর মৌসুমী অরুণ রিয়া",
        "চৌধুরী চক্রবর্তী মুখার্জি ইসলাম হোসেন দাশগুপ্ত সরকার বিশ্বাস খাতুন মণ্ডল",
        "গুলশানসড়ক ধানমন্ডিরোড পার্কস্ট্রিট কলেজস্ট্রিট মিরপুররোড বেগমবাজার শ্যামলীরোড গড়িয়াহাট মতিঝিলসড়ক লেকরোড",
        "ঢাকা কলকাতা চট্টগ্রাম সিলেট রাজশাহী খুলনা বরিশাল হাওড়া শিলিগুড়ি রংপুর",
    ),
    "tamil": (
        "முருகன் கவிதா செந்தில் லட்சுமி கார்த்திக் மீனாட்சி அருண் பிரியா சரவணன் தமிழ்ச்செல்வி",
        "சுப்பிரமணியன் ராஜேந்திரன் நடராஜன் கிருஷ்ணன் பாண்டியன் வேலுசாமி செல்வராஜ் கண்ணன் இளங்கோ மாணிக்கம்",
        "அண்ணாசாலை காந்திதெரு பாரதிசாலை நேருதெரு மவுண்ட்ரோடு கடற்கரைசாலை கோவில்தெரு ரயிலடி பெரியார்சாலை வடக்குவீதி",
        "சென்னை மதுரை கோவை திருச்சி சேலம் நெல்லை வேலூர் தஞ்சாவூர் ஈரோடு கடலூர்",
    ),
    "arabic": (
        "مُحَمَّد أحمد فاطمة خديجة عمر ليلى يوسف زينب إبراهيم نورة",
        "العتيبي الحربي القحطاني الشمري الدوسري المطيري الزهراني الغامدي السبيعي العنزي",
        "شارع‌النيل شارع‌التحرير شارع‌الملك شارع‌الورود شارع‌الجامعة شارع‌البحر شارع‌النخيل شارع‌السلام شارع‌الوادي شارع‌الربيع",
        "القاهرة الرياض جدة بغداد دمشق بيروت عمّان الدوحة مسقط الكويت",
    ),
    "hebrew": (
        "דָּוִד שרה יוסף רחל משה נעמי אברהם תמר יעקב אסתר",
        "כהן לוי מזרחי פרץ ביטון אברמוב פרידמן גולדשטיין שפירא רוזנברג",
        "דיזנגוף אלנבי רוטשילד הרצל ז׳בוטינסקי ויצמן ביאליק ארלוזורוב סוקולוב העצמאות",
        "ירושלים חיפה אשדוד נתניה רעננה אילת טבריה עכו אשקלון הרצליה",
    ),
    "vietnamese": (
        "Hương Tuấn Thảo Phượng Dũng Quỳnh Hiếu Ngọc Đức Thủy",
        "Nguyễn Trần Phạm Hoàng Huỳnh Vũ Võ Đặng Bùi Đỗ",
        "Lê-Lợi Nguyễn-Huệ Trần-Phú Hai-Bà-Trưng Điện-Biên-Phủ Lý-Thường-Kiệt Bạch-Đằng Hùng-Vương Võ-Thị-Sáu Cầu-Giấy",
        "Huế Hà-Nội Đà-Nẵng Cần-Thơ Hải-Phòng Nha-Trang Đà-Lạt Vũng-Tàu Quy-Nhơn Biên-Hòa",
    ),
}
pytestmark = pytest.mark.long

# What shops of these scripts write to anybody.
ORDINARY = """
Brown oak desk; Rose gold ring; Mark all as read; Max. 40 kg; Grace period: 14 days; Young fashion; Will ship today
Grüner Tee; Schwarz, matt; Lange Hosen; Kaffee hell; Brötchen, 6 Stück; Straßenschuhe; Größe 42; Müsli Nuss
Белая рубашка; Чайник красный; Зелёный чай; Новая коллекция; Размер 42; Роза садовая; Вера в себя: книга
Κόκκινος βραστήρας; Νέες αφίξεις; Πράσινο τσάι; Μέγεθος 42; Χαρά, γλυκό; Ελιές Καλαμάτας
김 100g; 이 상품; 최저가 상품; 정품 보장; 강력 추천; 조리 도구; 윤기 나는; 장바구니; 임산부용; 박스 포장
사랑의 선물; 무료 배송
黄金首饰; 白色杨木桌; 张贴画; 陈年老酒; 周年庆; 刘海夹; 赵州桥模型; 王牌产品; 李子干; 吴门画册; 红色水壶; 加入购物车
川口の海苔; 林檎ジャム; 佐賀牛; 鈴虫の音; 高級腕時計; 田んぼの米; 渡し船の絵; 小さい鍋; 送料無料; 赤いケトル
伊勢海老; 村の塩
ราคาถูก ส่งฟรี; ของใหม่; กาต้มน้ำสีแดง; ชาเขียว; ไซส์เล็ก; รองเท้าผ้าใบ
लाल केतली; नया संग्रह; हरी चाय; साइज़ बड़ा; आराम कुर्सी; मुफ़्त डिलीवरी; विजयी ऑफ़र
লাল কেটলি; নতুন সংগ্রহ; সবুজ চা; বড় সাইজ; অরুণিমা শাড়ি; বিনামূল্যে ডেলিভারি
சிவப்பு கெண்டி; புதிய வரவு; பச்சை தேநீர்; பெரிய அளவு; அருணோதயம் புத்தகம்; இலவச விநியோகம்
غلاية حمراء; مجموعة جديدة; شاي أخضر; مقاس كبير; عمرها طويل; شحن مجاني
קומקום אדום; קולקציה חדשה; תה ירוק; מידה גדולה; לוח שנה; משלוח חינם
Áo sơ mi trắng; Ấm đun nước đỏ; Hàng mới về; Trà xanh; Giày chạy bộ; Miễn phí vận chuyển
Size 42; EUR 129.00; 4.5 (1,024); EAN 4405140135912; Pack of 12; 5 x 660 g; 30 days; 24/7; 1970s style; Model 902-77
Order by phone; Post code search; Email us; Our company; Street wear; City bag; Birthday cards; First aid; Last chance
Free returns; Gift cards; Wool coat; Desk lamp; Red kettle; Garden hose; Tea towel; Running shoes; Blue jeans; Bath mat
Cotton socks; Silk tie; Rain coat; Beach bag; Notebook A5; Fountain pen; Cat food; Dog lead; Bird seed; Fish oil; Salt
Sale -30%; 2 for 1; New in; Top rated; Only 3 left; Add to cart; Buy now; Sign in; Your cart; Wish list; Compare
Sort by price; In stock; Sold out; Next day; Ships free; Save 10%; From $25; 100% wool; Made in Italy; Hand wash
Lees meer; In winkelwagen; Ajouter au panier; Livraison offerte; Añadir al carrito; Envío gratis; Aggiungi; Spedizione
Dodaj do koszyka; Wysyłka gratis; Lägg i varukorg; Fri frakt; Sepete ekle; Kargo bedava
Blue; Green; Large; Small; Wool; Leather; Oak; Free
Pepper mill; Bread knife; Cutting board; Tea pot; Coffee cup; Soup bowl; Side plate; Wine glass; Table cloth; Napkins
"""
ORDINARY_TEXTS = [text.strip() for text in ORDINARY.replace("\n", ";").split(";") if text.strip()][:200]
COLUMNS = ("first_name", "last_name", "street", "city")
FORMS = ("NFC", "NFD")
Row = dict[str, str]


def table_of(script: str, form: str) -> list[Row]:
    """Ten users with ten values each."""
    lists = [text.split() for text in PEOPLE[script]]
    rows = []
    for number in range(10):
        row = {"user_id": f"{script}-{form}-{number}"}
        row |= {name: words[number] for name, words in zip(COLUMNS, lists, strict=True)}
        row["street"] += f" {number + 21}"
        row |= {
            "email": f"{script[:3]}xq{number}zk@post.example",
            "phone": f"+49 30 9{len(script) % 10}{number}8{number}204",
            "postcode": f"5{number}66{number}",
            "birth_date": f"19{60 + number}-0{1 + number % 9}-1{number}",
            "order_id": f"{number}02-{list(PEOPLE).index(script)}7{number}13",
            "company": f"{lists[1][number]}{lists[3][number]} {number + 5}",
        }
        rows.append(row)
    return rows


def page_of(row: Row, ordinary: str) -> str:
    """What a shop says of a customer, in texts, attributes and a comment, and what it says to anybody."""
    first, last, street, city = (html.escape(row[name]) for name in COLUMNS)
    path = quote(f"/lists/{row['first_name']} {row['last_name']}")
    return (
        f'<!-- for {last} {first} --><header data-user="{last}"><a name="hello" href="{path}">{first}</a></header>'
        f'<a name="{first.lower()}_wishes" title="{first} {last}">{first} {last}</a><p>{last.upper()} {first}</p>'
        f"<p>{street}<br>{row['postcode']} {city}</p><p>{street}, {city}</p><p>{row['company']}</p>"
        f'<p>{row["email"]} {row["phone"]}</p><img src="/u/{quote(row["last_name"])}.png" alt="{last}">'
        f'<input name="q" value="{first} {last}"><p>{row["order_id"]} {row["birth_date"]}</p>\n{ordinary}'
    )


def log_of(rows: list[Row]) -> Iterator[str]:
    for number, row in enumerate(rows):
        user, form = row["user_id"], row["user_id"].split("-")[1]
        row = {name: unicodedata.normalize(form, value) for name, value in row.items()}
        first, last = row["first_name"], row["last_name"]
        url = f"https://shop.example/u/{quote(first)}?n={quote(last)}&back={quote(quote('/a?c=' + row['city']))}"
        page = page_of(row, f"<p>{ORDINARY_TEXTS[number]}</p>" if number < len(ORDINARY_TEXTS) else "")
        typed = {"type": "type_and_submit", "name": "q", "text": f"{last} {row['street']}"}
        steps = [
            {"page": page, "action": {"type": "click", "name": f"{first.lower()}_wishes"}, "url": url},
            {"page": page, "action": typed, "rationale": f"{first} {last}, {row['city']}", "url": url},
            {"page": "<p>Wool</p>", "action": {"type": "click", "name": f"{last.lower()}_elsewhere"}},
        ]
        yield json.dumps({"session_id": user, "user_id": user, "source": "x", "steps": steps})
        yield json.dumps({"session_id": f"bad {user}", "user_id": user, "steps": f"{first} {row['email']}"})


def write_table(path: Path, rows: list[Row]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


def bare(text: str) -> str:
    """A rule of its own: compatible letters in lower case, without blanks, punctuation and what is no letter."""
    for _ in range(2):
        text = html.unescape(text)
    letters = unicodedata.normalize("NFKC", text.casefold())
    return "".join(letter for letter in letters if letter.isalnum() or unicodedata.category(letter) == "Mc")


@pytest.fixture(scope="module")
def imported(tmp_path_factory) -> tuple[list[Row], SessionStore]:
    folder = tmp_path_factory.mktemp("scripts")
    rows = [row for form in FORMS for script in PEOPLE for row in table_of(script, form)]
    (folder / "log.jsonl").write_text("\n".join(log_of(rows)), "utf-8")
    table = write_table(folder / "customers.csv", rows)
    words = f"import jsonl {folder}/log.jsonl --private-data remove --customers {table} --out {folder}/store"
    assert main([*words.split(), "--workers", "1"]) == 0
    return rows, SessionStore.open(folder / "store")


@pytest.mark.parametrize("script", PEOPLE)
def test_no_value_of_a_customer_stays(script, imported):
    rows, store = imported
    assert store.manifest.options["private_data"] == "customers"
    assert store.manifest.options["values_found"] == "0"
    rejected = bare((store.path / "rejected.jsonl").read_text("utf-8"))
    left = []
    for row in rows:
        if row["user_id"].startswith(script):
            steps = str(msgspec.to_builtins(store.session(row["user_id"]).steps[:]))
            own = bare(steps.replace(script, ""))
            values = [value for name, value in row.items() if name != "user_id" and not is_short(value)]
            left += [(row["user_id"], value) for value in values if bare(value) in own]
            left += [("rejected", value) for value in (row["email"], row["company"]) if bare(value) in rejected]
    assert left == []


def is_short(value: str) -> bool:
    """Words that stay by a stated rule: of one or two letters, or of one syllable where each is a letter."""
    letters = bare(value)
    return len(letters) < (2 if "\u3040" <= letters[0] <= "\ud7af" else 3)


def test_of_two_hundred_texts_of_shops_at_most_one_changes(imported):
    rows, store = imported
    assert len(ORDINARY_TEXTS) == 200
    pages = (store.session(row["user_id"]).steps[0].page for row in rows)
    changed = [text for text, page in zip(ORDINARY_TEXTS, pages, strict=False) if f"<p>{text}</p>" not in page]
    assert len(changed) <= 1, changed


@pytest.mark.parametrize("script", PEOPLE)
def test_each_value_that_comes_back_is_detected(script, imported):
    """Fifty in all: four values of a user of each script, each in another field."""
    rows, store = imported
    rows = [row for row in rows if row["user_id"].startswith(f"{script}-NFD")]
    row = rows[4]
    session = store.session(row["user_id"])
    first, typed, _ = session.steps
    changes = (
        replace(first, page=first.page + f"<p>{unicodedata.normalize('NFD', row['first_name']).upper()}</p>"),
        replace(first, url=f"https://shop.example/?c={quote(quote(row['city']))}"),
        replace(first, page=first.page + f'<a href="mailto:{row["email"]}">mail</a>'),
        replace(typed, action=Click(name="_".join(row["street"].lower().split()))),
    )
    for step in changes:
        remaining = RemainingValues(rows)
        broken = replace(session, steps=(step,))
        remaining.search([broken], [broken], {})
        assert len(remaining.leaks) >= 1, step
        assert {leak.value.user_id for leak in remaining.leaks} == {row["user_id"]}
