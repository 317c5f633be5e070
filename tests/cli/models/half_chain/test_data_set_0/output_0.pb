
BoutputJ˜:Ý½ž@>