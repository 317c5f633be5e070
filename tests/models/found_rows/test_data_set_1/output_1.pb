	BzJqü›BncwBÕ‡BÔýqB=*›B
üzB©ä‚BâærBiêB"ƒBE~BáÍ`BPÞ]B8žTB(±bBK_RBµ'Bžì!BÊf)B®s-BFCüAÇÉÜA‰UÚAV5äAÛø¹Anô—AÚ¬A+™Afï@:þ A¦¶ì@z“Ð@ P§½cp(@`I„@—
@