"""Statements in six languages, of the same fifteen topics in the same order, each with a question in other words."""

from __future__ import annotations

PAIRS: dict[str, tuple[tuple[str, str], ...]] = {
    "English": (
        (
            "We moved the weekly sync from Tuesday to Thursday at ten.",
            "when is our regular team meeting now",
        ),
        (
            "Mia is allergic to peanuts and carries an injector.",
            "which nuts must the girl not eat",
        ),
        (
            "The boiler was serviced in March; next check due in spring.",
            "when did the heating technician come",
        ),
        (
            "My sister's new puppy is called Biscuit.",
            "what's the name of her dog",
        ),
        (
            "We decided to host the database in Frankfurt because of privacy rules.",
            "where do our servers stand and why",
        ),
        (
            "The landlord raised the rent by eight percent.",
            "how much more does the flat cost",
        ),
        (
            "Grandma's recipe needs buttermilk instead of yoghurt.",
            "what dairy goes into the old family cake",
        ),
        (
            "I quit smoking on the first of June.",
            "since when am I without cigarettes",
        ),
        (
            "The car failed its inspection because of worn brakes.",
            "why didn't the vehicle pass the test",
        ),
        (
            "Tom got promoted to head of sales.",
            "who leads the people that deal with customers",
        ),
        (
            "The flight to Lisbon leaves at six in the morning.",
            "what time does our plane take off",
        ),
        (
            "Our daughter starts school in September.",
            "when does the child begin first grade",
        ),
        (
            "The wifi password is on the back of the router.",
            "how do I get onto the internet at home",
        ),
        (
            "The doctor said to take the pills twice a day after meals.",
            "how often should I use the medicine",
        ),
        (
            "We chose blue tiles for the bathroom.",
            "what colour will the washroom have",
        ),
    ),
    "German": (
        (
            "Wir haben die wöchentliche Besprechung von Dienstag auf Donnerstag um zehn verlegt.",
            "wann ist jetzt unser regelmäßiges Teamtreffen",
        ),
        (
            "Mia ist gegen Erdnüsse allergisch und trägt einen Injektor bei sich.",
            "welche Nüsse darf das Mädchen nicht essen",
        ),
        (
            "Der Heizkessel wurde im März gewartet; die nächste Prüfung ist im Frühjahr.",
            "wann war der Techniker für die Heizung da",
        ),
        (
            "Der neue Welpe meiner Schwester heißt Biscuit.",
            "wie heißt ihr Hund",
        ),
        (
            "Wir haben beschlossen, die Datenbank wegen des Datenschutzes in Frankfurt zu betreiben.",
            "wo stehen unsere Server und warum",
        ),
        (
            "Der Vermieter hat die Miete um acht Prozent erhöht.",
            "um wie viel teurer ist die Wohnung geworden",
        ),
        (
            "Omas Rezept braucht Buttermilch statt Joghurt.",
            "welches Milchprodukt kommt in den alten Familienkuchen",
        ),
        (
            "Ich habe am ersten Juni mit dem Rauchen aufgehört.",
            "seit wann lebe ich ohne Zigaretten",
        ),
        (
            "Das Auto fiel wegen abgenutzter Bremsen durch den TÜV.",
            "warum hat das Fahrzeug die Prüfung nicht bestanden",
        ),
        (
            "Tom wurde zum Vertriebsleiter befördert.",
            "wer führt die Leute, die mit Kunden zu tun haben",
        ),
        (
            "Der Flug nach Lissabon geht um sechs Uhr morgens.",
            "um welche Zeit hebt unsere Maschine ab",
        ),
        (
            "Unsere Tochter kommt im September in die Schule.",
            "wann beginnt das Kind die erste Klasse",
        ),
        (
            "Das WLAN-Passwort steht auf der Rückseite des Routers.",
            "wie komme ich zu Hause ins Internet",
        ),
        (
            "Der Arzt sagte, die Tabletten zweimal täglich nach dem Essen zu nehmen.",
            "wie oft soll ich das Medikament anwenden",
        ),
        (
            "Für das Badezimmer haben wir blaue Fliesen gewählt.",
            "welche Farbe bekommt der Waschraum",
        ),
    ),
    "French": (
        (
            "Nous avons déplacé la réunion hebdomadaire du mardi au jeudi à dix heures.",
            "quand a lieu maintenant le rendez-vous régulier de l'équipe",
        ),
        (
            "Mia est allergique aux cacahuètes et porte un injecteur.",
            "quelles noix la petite fille ne doit-elle pas manger",
        ),
        (
            "La chaudière a été révisée en mars ; prochain contrôle au printemps.",
            "quand est venu le technicien du chauffage",
        ),
        (
            "Le nouveau chiot de ma sœur s'appelle Biscuit.",
            "comment se nomme son chien",
        ),
        (
            "Nous avons décidé d'héberger la base de données à Francfort à cause des règles de confidentialité.",
            "où se trouvent nos serveurs et pourquoi",
        ),
        (
            "Le propriétaire a augmenté le loyer de huit pour cent.",
            "combien l'appartement coûte-t-il de plus",
        ),
        (
            "La recette de grand-mère demande du babeurre au lieu du yaourt.",
            "quel laitage entre dans le vieux gâteau de famille",
        ),
        (
            "J'ai arrêté de fumer le premier juin.",
            "depuis quand suis-je sans cigarettes",
        ),
        (
            "La voiture a échoué au contrôle technique à cause de freins usés.",
            "pourquoi le véhicule n'a-t-il pas passé l'examen",
        ),
        (
            "Tom a été promu directeur des ventes.",
            "qui dirige les gens qui traitent avec les clients",
        ),
        (
            "Le vol pour Lisbonne part à six heures du matin.",
            "à quelle heure décolle notre avion",
        ),
        (
            "Notre fille entre à l'école en septembre.",
            "quand l'enfant commence-t-elle le cours préparatoire",
        ),
        (
            "Le mot de passe du wifi est au dos du routeur.",
            "comment aller sur internet à la maison",
        ),
        (
            "Le médecin a dit de prendre les comprimés deux fois par jour après les repas.",
            "à quelle fréquence dois-je utiliser le médicament",
        ),
        (
            "Nous avons choisi des carreaux bleus pour la salle de bain.",
            "quelle couleur auront les murs de la pièce où on se lave",
        ),
    ),
    "Spanish": (
        (
            "Pasamos la reunión semanal del martes al jueves a las diez.",
            "cuándo es ahora el encuentro habitual del equipo",
        ),
        (
            "Mia es alérgica a los cacahuetes y lleva un inyector.",
            "qué frutos secos no puede comer la niña",
        ),
        (
            "La caldera se revisó en marzo; el próximo control toca en primavera.",
            "cuándo vino el técnico de la calefacción",
        ),
        (
            "El nuevo cachorro de mi hermana se llama Biscuit.",
            "cuál es el nombre de su perro",
        ),
        (
            "Decidimos alojar la base de datos en Fráncfort por las normas de privacidad.",
            "dónde están nuestros servidores y por qué",
        ),
        (
            "El casero subió el alquiler un ocho por ciento.",
            "cuánto más cuesta el piso",
        ),
        (
            "La receta de la abuela lleva suero de leche en vez de yogur.",
            "qué lácteo va en el viejo pastel de la familia",
        ),
        (
            "Dejé de fumar el uno de junio.",
            "desde cuándo estoy sin cigarrillos",
        ),
        (
            "El coche no pasó la inspección por los frenos gastados.",
            "por qué suspendió el vehículo la prueba",
        ),
        (
            "Ascendieron a Tom a jefe de ventas.",
            "quién dirige a la gente que trata con los clientes",
        ),
        (
            "El vuelo a Lisboa sale a las seis de la mañana.",
            "a qué hora despega nuestro avión",
        ),
        (
            "Nuestra hija empieza el colegio en septiembre.",
            "cuándo comienza la niña primero de primaria",
        ),
        (
            "La contraseña del wifi está detrás del router.",
            "cómo me conecto a internet en casa",
        ),
        (
            "El médico dijo que tomara las pastillas dos veces al día después de comer.",
            "con qué frecuencia debo usar la medicina",
        ),
        (
            "Elegimos azulejos azules para el baño.",
            "de qué color será el aseo",
        ),
    ),
    "Chinese": (
        (
            "我们把每周例会从星期二改到了星期四十点。",
            "团队的固定会议现在是什么时候",
        ),
        (
            "米娅对花生过敏，随身带着注射器。",
            "那个女孩不能吃哪种坚果",
        ),
        (
            "锅炉在三月做了保养，下次检查在春天。",
            "暖气技师是什么时候来的",
        ),
        (
            "我妹妹新养的小狗叫饼干。",
            "她的狗叫什么名字",
        ),
        (
            "因为隐私法规，我们决定把数据库放在法兰克福。",
            "我们的服务器在哪里，为什么",
        ),
        (
            "房东把房租涨了百分之八。",
            "公寓贵了多少",
        ),
        (
            "奶奶的食谱要用酪乳而不是酸奶。",
            "老式家庭蛋糕里放什么乳制品",
        ),
        (
            "我从六月一日起戒烟了。",
            "我从什么时候开始不抽香烟",
        ),
        (
            "汽车因为刹车磨损没有通过年检。",
            "车辆为什么没有合格",
        ),
        (
            "汤姆升职为销售主管。",
            "谁负责领导和客户打交道的人",
        ),
        (
            "去里斯本的航班早上六点起飞。",
            "我们的飞机几点出发",
        ),
        (
            "我们的女儿九月开始上学。",
            "孩子什么时候读一年级",
        ),
        (
            "无线网络密码写在路由器背面。",
            "在家怎么上网",
        ),
        (
            "医生说药片每天饭后吃两次。",
            "这个药应该多久用一次",
        ),
        (
            "浴室我们选了蓝色的瓷砖。",
            "卫生间会是什么颜色",
        ),
    ),
    "Japanese": (
        (
            "毎週の打ち合わせを火曜日から木曜日の十時に移した。",
            "チームの定例会議は今いつですか",
        ),
        (
            "ミアはピーナッツアレルギーで注射器を持ち歩いている。",
            "その女の子が食べてはいけないナッツは何",
        ),
        (
            "ボイラーは三月に点検した。次の検査は春。",
            "暖房の技術者が来たのはいつ",
        ),
        (
            "妹の新しい子犬の名前はビスケット。",
            "彼女の犬は何という名前か",
        ),
        (
            "プライバシー規則のため、データベースはフランクフルトに置くことにした。",
            "サーバーはどこにあり、なぜか",
        ),
        (
            "大家が家賃を八パーセント上げた。",
            "部屋はいくら高くなったか",
        ),
        (
            "おばあちゃんのレシピはヨーグルトではなくバターミルクを使う。",
            "昔の家族のケーキに入れる乳製品は",
        ),
        (
            "六月一日にたばこをやめた。",
            "いつから禁煙しているか",
        ),
        (
            "車はブレーキの摩耗で車検に落ちた。",
            "自動車が検査に通らなかった理由",
        ),
        (
            "トムは営業部長に昇進した。",
            "顧客を担当する人たちを率いるのは誰",
        ),
        (
            "リスボン行きの便は朝六時に出る。",
            "飛行機は何時に離陸する",
        ),
        (
            "娘は九月に学校に入る。",
            "子どもが一年生になるのはいつ",
        ),
        (
            "Wi-Fiのパスワードはルーターの裏にある。",
            "家でインターネットにつなぐには",
        ),
        (
            "医者は錠剤を一日二回食後に飲むように言った。",
            "薬はどのくらいの頻度で使うべきか",
        ),
        (
            "浴室には青いタイルを選んだ。",
            "洗面所は何色になるか",
        ),
    ),
}
