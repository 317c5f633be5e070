BpowersJ
{||||z|{{{