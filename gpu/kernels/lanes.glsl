// The reduction of exact mode (rule 1 of gpu/DESIGN.md): element i of a sum belongs to
// lane i mod 16.
#define LANES 16u

// The fold of 16 lanes: 16 → 8 → 4 → 2 → 1.
float foldLanes(float v[16]) {
	PRECISE float a0 = v[0] + v[8];
	PRECISE float a1 = v[1] + v[9];
	PRECISE float a2 = v[2] + v[10];
	PRECISE float a3 = v[3] + v[11];
	PRECISE float a4 = v[4] + v[12];
	PRECISE float a5 = v[5] + v[13];
	PRECISE float a6 = v[6] + v[14];
	PRECISE float a7 = v[7] + v[15];
	PRECISE float b0 = a0 + a4;
	PRECISE float b1 = a1 + a5;
	PRECISE float b2 = a2 + a6;
	PRECISE float b3 = a3 + a7;
	PRECISE float c0 = b0 + b2;
	PRECISE float c1 = b1 + b3;
	PRECISE float d = c0 + c1;
	return d;
}
