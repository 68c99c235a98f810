"""How a refusal begins, by language: ``declines`` (will not, cannot) and ``lacks`` (does not know, has no information).

Written for text in lower case with straight apostrophes. First person throughout: "you cannot return gift cards" and "stores are
unable to provide refunds" are answers.
"""

from typing import Final

_EN_I: Final = r"(?:i|we)"
_EN_CANNOT: Final = (
    r"(?:can(?:no|')t|can not|could(?:n't| not)|won't|will not|(?:won't|will not|wouldn't|would not) be able to|refuse to|decline to|am (?:un|not )able to|'m (?:un|not )able to|are (?:un|not )able to"
    r"|must decline to|have to decline to|am not (?:allowed|permitted) to|'m not (?:allowed|permitted) to)"
)
_EN_DO: Final = (
    r"(?:help|assist|answer|respond|provide|share|comply|fulfil|support|discuss|create|generate|write|give|offer|tell|disclose|reveal"
    r"|engage|participate|access|browse|open|process|complete|continue|proceed|do (?:that|this|so)|advise|produce|speculate|comment"
    r"|determine|confirm|verify|perform|carry out|fulfill)"
)
_EN_ADVERB: Final = r"(?: (?:really|just|currently|simply|unfortunately|personally|also|directly|in good conscience|ethically|legally))*"

#: language → (declines, lacks)
PHRASES: Final[dict[str, tuple[str, str]]] = {
    "en": (
        rf"\b{_EN_I}{_EN_ADVERB} ?{_EN_CANNOT}{_EN_ADVERB} {_EN_DO}\b"
        rf"|(?:^|[.!?,] )(?:sorry,? (?:but )?)?(?:unable|not able) to {_EN_DO}\b"
        rf"|(?:^|[.!?,] )(?:sorry,? (?:but )?)?(?:can(?:no|')t|can not|won't) (?:help|assist|comply|do that|do this|answer)\b"
        r"|\bi(?:'m| am) (?:very |so |really )?(?:sorry|afraid),? (?:but )?(?:that )?i(?:'m| am)? (?:can(?:no|')t|can not|won't|unable|not able)\b"
        r"|\b(?:sorry|apologies),? (?:but )?i(?: am|'m)? (?:can(?:no|')t|can not|won't|unable|not able)\b"
        r"|\b(?:i|we) (?:must|have to|need to|will have to|respectfully) (?:decline|refuse)\b|\bi(?:'d| would) (?:rather|prefer) not\b"
        r"|\bi(?:'m| am) not (?:comfortable|going to (?:help|assist|answer|do))\b"
        r"|\b(?:is|are|falls?) (?:outside|beyond) (?:of )?(?:my|what i)\b"
        r"|\bi (?:can|am able to) only (?:help|assist|answer)\b|\bi(?:'m| am) only able to (?:help|assist|answer)\b"
        r"|\b(?:this|that|your) (?:request|question|content) (?:violates|goes against|is against)\b|\bagainst my (?:guidelines|policy|policies|programming)\b",
        r"\bi(?: do not|(?: really| just)? don't)(?: currently| actually)? (?:know\b(?! if i\b)|have (?:any |enough |access|the |that |this |specific |sufficient |real-time |up-to-date )"
        r"*(?:information|data|access|knowledge|details|context|answer|ability|capability|means|record|records))\b"
        r"|\bi have no (?:information|data|knowledge|record|records|access|idea|way)\b|\bi(?:'m| am) not (?:sure|certain|aware|familiar)\b"
        r"|\b(?:there (?:is|are)|i (?:have|see|find|found)|(?:i )?(?:could|can)(?:n't| not|not|'t) find) (?:no|not (?:any|enough)|any|insufficient)(?: [a-z]+)? "
        r"information (?:about|on|in|to|regarding|available)\b"
        r"|\bthe (?:(?:provided|given|available|retrieved|supplied) )?(?:documents?|context|sources?|text|information|passages?|knowledge base)(?: provided| given)? "
        r"(?:do(?:es)?(?: not|n't) (?:mention|contain|say|provide|include|specify|state|cover|address|have)|is not (?:sufficient|enough)|are not (?:sufficient|enough))\b"
        r"|\bi (?:can(?:no|')t|could(?:n't| not)|am unable to|'m unable to|was unable to|wasn't able to) (?:find|locate|see) (?:any|anything|that|this|it|your|the)\b"
        r"|(?:^|[.!?] )(?:not (?:any|enough)|no|insufficient) (?:relevant )?information\b"
        rf"|\bi(?: am|'m) [^.!?]{{1,40}}\band {_EN_CANNOT} {_EN_DO}\b"
        r"|\bas an? (?:ai|artificial intelligence|(?:large )?language model|virtual assistant|chatbot)\b[^.!?]{0,60}\b"
        r"(?:can(?:no|')t|can not|unable|not able|don't|do not|won't|am not|'m not)\b",
    ),
    "es": (
        r"\b(?:no|tampoco) (?:te |le |les |os )?(?:puedo|podemos|podré|soy capaz de|estoy en condiciones de|me es posible) (?:ayudar|asistir|responder|contestar|proporcionar|"
        r"cumplir|compartir|dar|ofrecer|facilitar|acceder|hacer|generar|crear|escribir|procesar|revelar)|\blo siento,? (?:pero )?no puedo\b",
        r"\bcomo (?:una? )?(?:ia|inteligencia artificial|modelo de lenguaje|asistente virtual)\b[^.!?]{0,60}\bno\b|\bno (?:tengo|dispongo de|cuento con) (?:la |suficiente |ninguna |esa |acceso|más )*(?:información|datos|acceso|conocimiento|detalles)|\b(?:yo )?no (?:lo )?sé\b"
        r"|\b(?:los documentos|el documento|el contexto|el texto) no (?:menciona|contiene|dice|incluye|especifica|indica)",
    ),
    "fr": (
        r"\bje ne (?:peux|puis|suis) (?:malheureusement |absolument )?(?:pas|ni)(?: (?:en mesure|capable|autorisée?) (?:de|d')|(?: vous| te| y| en| le| la| l')?(?: malheureusement)? ?"
        r"(?:aider|répondre|fournir|donner|partager|accéder|faire|assister|créer|générer|écrire|traiter|satisfaire|divulguer))"
        r"|\b(?:désolée?|regrette),? (?:mais )?je ne (?:peux|puis)\b",
        r"\ben tant qu['e ]+(?:ia|intelligence artificielle|un modèle de langage|modèle de langage|assistant)\b[^.!?]{0,60}\bne\b|\bje n'ai (?:pas|aucune?)(?: (?:d'|assez d'|suffisamment d'|de |accès|l'))? ?(?:information|informations|données|accès|connaissance|aux|à)?|\bje ne (?:le )?sais pas\b"
        r"|\b(?:les documents|le document|le contexte|le texte)(?: fournis?)? ne (?:mentionne|contien|précise|dit|indique|fourni)",
    ),
    "de": (
        r"\b(?:kann|könnte|darf|werde) ich (?:(?:ihnen|dir|euch|dabei|damit|das|dazu|diese[ns]?|leider|hierbei|keine?n?|auskunft) )*(?:nicht|keine?n?) (?:\w+ ){0,4}?"
        r"(?:helfen|beantworten|weiterhelfen|unterstützen|geben|bereitstellen|erstellen|teilen|machen|tun|zugreifen|schreiben|ausführen)\b"
        r"|\bich (?:kann|darf|werde) (?:\w+ ){0,5}?(?:nicht|keine?n?) (?:\w+ ){0,5}?(?:helfen|beantworten|weiterhelfen|unterstützen|geben|bereitstellen|erstellen|teilen|zugreifen|schreiben|ausführen)\b"
        r"|\b(?:bin ich|ich bin) (?:leider )?nicht in der lage\b|\btut mir leid,? (?:aber )?(?:dabei |das |da )?(?:kann|darf) ich\b",
        r"\bals (?:ki|künstliche intelligenz|sprachmodell|ki-\w+)\b[^.!?]{0,60}\b(?:nicht|keine?n?)\b|\b(?:habe ich|ich habe|liegen mir|mir liegen|mir fehlen|fehlen mir) (?:leider )?(?:dazu |darüber |hierzu )?(?:keine?n?|nicht genügend|nicht genug|die) (?:informationen|zugriff|angaben|daten|kenntnis)"
        r"|\b(?:das )?weiß ich (?:leider )?nicht\b|\bich weiß (?:es |das )?(?:leider )?nicht\b"
        r"|\b(?:die dokumente|das dokument|der kontext|der text) (?:enthalten|enthält|erwähnen|erwähnt|sagen|sagt|nennen|nennt) (?:\w+ ){0,4}?(?:nicht|keine?n?|nichts)\b",
    ),
    "pt": (
        r"\bnão (?:posso|podemos|consigo|sou capaz de|estou autorizad[oa] a) (?:te |lhe |o |a )?(?:ajud|respond|fornec|compartilh|partilh|dar|oferec|acess|faz|ger|cri|escrev|atend|revel)"
        r"|\b(?:desculpe|lamento|sinto muito),? (?:mas )?(?:eu )?não (?:posso|consigo)\b",
        r"\bcomo (?:uma? )?(?:ia|inteligência artificial|modelo de linguagem|assistente virtual)\b[^.!?]{0,60}\bnão\b|\bnão (?:tenho|disponho de|possuo) (?:a |as |nenhuma |acesso|essa |informações |suficientes? )*(?:informaç|dados|acesso|conhecimento|detalhes)|\b(?:eu )?não sei\b"
        r"|\b(?:os documentos|o documento|o contexto|o texto) não (?:menciona|contém|contêm|diz|inclui|especifica)",
    ),
    "it": (
        r"\bnon (?:posso|possiamo|sono in grado di|mi è possibile|riesco a) (?:aiutar|risponder|fornir|condivider|dare|offrir|acceder|fare|generar|crear|scriver|assister|rivelar|soddisfar)"
        r"|\b(?:mi dispiace|spiacente),? (?:ma )?non (?:posso|riesco)\b",
        r"\bin quanto (?:ia|intelligenza artificiale|modello linguistico|assistente)\b[^.!?]{0,60}\bnon\b|\bnon (?:ho|dispongo di) (?:abbastanza |sufficienti |accesso|le |nessuna |alcuna )*(?:informazion|dati|accesso|conoscenz|dettagli)|\bnon (?:lo )?so\b"
        r"|\b(?:i documenti|il documento|il contesto|il testo) non (?:menziona|contien|contengono|dice|include|specifica)",
    ),
    "nl": (
        r"\b(?:ik kan|kan ik|ik mag|wij kunnen) (?:\w+ ){0,4}?(?:niet|geen) (?:\w+ ){0,4}?(?:helpen|beantwoorden|verstrekken|geven|delen|maken|doen|schrijven|uitvoeren)\b"
        r"|\b(?:ik ben|ben ik) (?:helaas )?niet in staat\b",
        r"\bals (?:ai|taalmodel|kunstmatige intelligentie)\b[^.!?]{0,60}\b(?:niet|geen)\b|\b(?:ik heb|heb ik) (?:helaas )?(?:geen|niet genoeg|onvoldoende) (?:informatie|toegang|gegevens)|\b(?:dat )?weet ik niet\b|\bik weet (?:het |dat )?niet\b",
    ),
    "pl": (
        r"\bnie mogę (?:\w+ ){0,3}?(?:pomóc|odpowiedzieć|udzielić|udostępnić|podać|wykonać|stworzyć|napisać)|\bnie jestem w stanie\b|\bprzykro mi,? (?:ale )?nie mogę\b",
        r"\bnie (?:mam|posiadam) (?:wystarczając\w+ )?(?:informacji|dostępu|danych)|\bnie wiem\b",
    ),
    "tr": (
        r"\byardımcı olama(?:m|yız|yacağım)|\bbuna? (?:yanıt|cevap) veremem|\b(?:üzgünüm|maalesef),? [^.!?]{0,60}(?:emem|amam|emiyorum|amıyorum)\b",
        r"\b(?:bilgim|bilgiye erişimim|yeterli bilgim) (?:yok|bulunmuyor)|\bbilmiyorum\b",
    ),
    "ru": (
        r"\b(?:я )?не (?:могу|можем|смогу|в состоянии) (?:\w+ ){0,3}?(?:помочь|ответить|предоставить|выполнить|поделиться|дать|создать|написать|сделать|раскрыть)|\b(?:извините|к сожалению|простите),? (?:но )?я не могу\b",
        r"\bкак (?:ии|искусственный интеллект|языковая модель)\b[^.!?]{0,60}\bне\b|\bу меня нет (?:\w+ )?(?:информации|доступа|данных|сведений)|\b(?:я )?не (?:знаю|располагаю)\b|\bв (?:документах|контексте|тексте) (?:нет|не (?:указан|сказан|упомина))",
    ),
    "uk": (
        r"\b(?:я )?не (?:можу|зможу) (?:\w+ ){0,3}?(?:допомогти|відповісти|надати|виконати|створити|написати)|\b(?:вибачте|на жаль),? (?:але )?я не можу\b",
        r"\b(?:у мене немає|я не маю) (?:\w+ )?(?:інформації|доступу|даних)|\b(?:я )?не знаю\b",
    ),
    "zh": (
        r"(?:我|本助手)?(?:无法|無法|不能|没办法|沒辦法)(?:为您|為您|向您|帮|幫|协助|協助|提供|回答|满足|滿足|完成|处理|處理|分享|透露|生成|执行|執行|访问|訪問)"
        r"|(?:抱歉|对不起|對不起|很遗憾|很遺憾)[，,、 ]?(?:但)?我?(?:无法|無法|不能|没办法)",
        r"作为(?:一个|一個)?(?:ai|人工智能|语言模型)[^。！？]{0,30}(?:无法|不能)|我(?:没有|沒有)(?:足够的?|相关的?|相關的?|任何)?(?:信息|資訊|资料|資料|数据|權限|权限)|我不(?:知道|清楚|确定|確定)|(?:文档|文檔|文件|资料|上下文)中?(?:没有|沒有|未)(?:提到|提及|说明|包含|相关)",
    ),
    "ja": (
        r"(?:お手伝い|ご協力|お答え|回答|提供|対応|共有|お応え|サポート|お教え|作成|生成|実行|アクセス)(?:を|は|する(?:こと(?:は|が))?|すること(?:は|が)|いたし|し|でき|が|も)*(?:でき(?:ません|ない|かねます)|いたしかねます|しかねます|かねます)"
        r"|(?:申し訳(?:ありません|ございません)|すみません)[^。]{0,60}(?:できません|できかねます|しかねます|お答えできない)",
        r"(?:情報|データ|アクセス権)(?:は|が|を)?(?:持って(?:いません|おりません)|ありません|ございません|不足して)|(?:私には)?わかりません|分かりません|(?:文書|資料|コンテキスト)(?:に|には)[^。]{0,30}(?:ありません|記載されていません|含まれていません)",
    ),
    "ko": (
        r"(?:도와드릴|도움을 드릴|답변할|답변드릴|제공할|제공해 드릴|대답할|공유할|수행할|작성할) 수 (?:가 )?없|(?:죄송하지만|죄송합니다)[^.!?]{0,60}(?:수 없|어렵)",
        r"(?:정보|데이터|권한)(?:가|이|를|은|는)? (?:없|부족)|(?:잘 )?모르겠|알 수 없습니다|(?:문서|자료)에[^.!?]{0,30}(?:없|포함되어 있지 않)",
    ),
    "ar": (
        r"(?:لا أستطيع|لا يمكنني|لا يمكننا|لن أتمكن من|لست قادر[اًة]* على|لا أقدر) (?:من )?(?:\w+ ){0,2}?(?:مساعدت|المساعدة|الإجابة|تقديم|مشاركة|توفير|أن أساعد|إنشاء|كتابة|تنفيذ|الرد|القيام)|(?:عذر[اًا]+|آسف|أعتذر)[،,]? (?:ولكن|لكن)?(?:ني)? ?لا (?:أستطيع|يمكنني)",
        r"(?:ليس لدي|ليست لدي|لا أملك|لا تتوفر لدي) (?:أي |ما يكفي من )?(?:معلومات|المعلومات|وصول|بيانات)|لا أعرف|لا أعلم",
    ),
    "hi": (
        r"(?:मदद|सहायता|उत्तर|जवाब|जानकारी|प्रदान|साझा) (?:नहीं (?:कर|दे)|करने में असमर्थ|करने में सक्षम नहीं)(?: सकत[ाीे]| पाऊंगा| पाऊँगा)?|(?:क्षमा करें|माफ़ करें|माफ करें|खेद है)[^।.!?]{0,60}नहीं (?:कर|दे) सकत[ाीे]",
        r"(?:मेरे पास|मुझे) (?:इस|इसकी|पर्याप्त|कोई|इसके बारे में)? ?(?:जानकारी नहीं|पर्याप्त जानकारी नहीं)|मुझे (?:नहीं पता|पता नहीं)",
    ),
}
