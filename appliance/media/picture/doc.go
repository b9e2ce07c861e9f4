// Package picture decodes pictures: PNG, JPEG, GIF, BMP, TIFF, WebP and PAM become
// RGB of 8 bits, and animations (GIF, WebP, APNG) and Motion-JPEG become frames with
// times.
//
// What a file declares is read from its headers alone (Describe) and held against
// limits before anything is allocated for its pixels. A file that cannot hold what
// it declares, because no coder packs that well, is refused before that too.
// Beside the picture itself decoders hold a few rows, or for JPEG its planes (and
// the coefficients where scans refine each other).
//
// Colours follow the libraries that training data went through: JPEG gives
// libjpeg's bytes (accurate integer transform, interpolated chroma), WebP those of
// libwebp, CMYK is converted like Pillow does, 16 bits keep the high byte.
// Orientation (EXIF) is applied and transparent pixels are laid on white; both can
// be switched off, which is what the reference does.
//
// A damaged file is an error (ErrDamaged), never half a picture. The package
// imports gpu/pixel for the type of its result, and neither fetches nor stores
// anything. Everything is safe for concurrent use.
package picture
