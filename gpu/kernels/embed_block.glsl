// The columns of a matrix of whole numbers.
vec4 columns(uint tile, uint quad) {
	uint b = quad / 8u;
	uint i = quad % 8u;
	vec2 d;
	vec2 m;
	scalesOf(superOf(tile, b / 8u), b, tile, d, m);
	Block k = blockOf(tile, b);
#if GROUP == 16
	bool first = i < 4u;
	PRECISE vec4 v = codes(k, i) * (first ? d.x : d.y);
	PRECISE float least = first ? m.x : m.y;
#else
	PRECISE vec4 v = codes(k, i) * d.x;
	PRECISE float least = m.x;
#endif
#ifdef MINIMA
	v = v + least;
#endif
	return v;
}
