package appliance

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// placed is a part of a prompt: a stretch of its text, or one of the request's media.
type placed struct {
	text string
	item int // in Request.Media; -1: text
}

// mark is a place in a prompt where an item is to stand.
type mark struct {
	from, to int
	kind     MediaKind // of the item; empty: of any kind
}

// ownMarks stand for media in any prompt, whatever the model.
var ownMarks = map[string]MediaKind{
	"<__image__>": Image, "<__audio__>": Audio, "<__video__>": Video, "<__media__>": "",
}

// imageMarks are common in prompts for models of other programs; "[img-N]" is one too.
var imageMarks = []string{"[IMG]", "[img]"}

// openers begin the turn of a user in the templates of usual models.
var openers = []string{
	"<start_of_turn>user\n", "<|turn>user\n", "<|im_start|>user\n", "<|im_start|>User:",
	"<|start_header_id|>user<|end_header_id|>\n\n", "<|user|>\n", "[INST]",
}

// placeMedia cuts a prompt into texts and media. Each marker takes an item; where there are no
// markers at all, the media stand behind the last beginning of a user's turn, or in front
// of everything. Framing that stands around a marker already is taken away with it, since
// the layout brings its own.
func placeMedia(prompt string, media []Media, frames [][]frame, info EncoderInfo) ([]placed, *Error) {
	marks := marksOf(prompt, media, info)
	if len(marks) == 0 {
		at := openingOf(prompt)
		parts := []placed{{prompt[:at], -1}}
		for i := range media {
			parts = append(parts, placed{item: i})
		}
		return append(parts, placed{prompt[at:], -1}), nil
	}
	items, ok := assign(marks, media)
	if !ok {
		return nil, Errorf(CodeMediaCount, "prompt", "the prompt has %s, the request has %s", markers(marks), counts(media))
	}
	var parts []placed
	at := 0
	for i, m := range marks {
		m.from -= longest(frames[items[i]], func(f frame) (string, bool) { return f.before, strings.HasSuffix(prompt[at:m.from], f.before) })
		m.to += longest(frames[items[i]], func(f frame) (string, bool) { return f.after, strings.HasPrefix(prompt[m.to:], f.after) })
		parts = append(parts, placed{prompt[at:m.from], -1}, placed{item: items[i]})
		at = m.to
	}
	return append(parts, placed{prompt[at:], -1}), nil
}

// marksOf finds our own markers in a prompt, else those of the model.
func marksOf(prompt string, media []Media, info EncoderInfo) []mark {
	if marks := findMarks(prompt, ownMarks); len(marks) > 0 {
		return marks
	}
	return findMarks(prompt, modelMarks(media, info))
}

// marksIn is how many markers a prompt has.
func marksIn(prompt string, media []Media, info EncoderInfo) int {
	return len(marksOf(prompt, media, info))
}

// findMarks finds the markers of a prompt in order, the longest where several begin.
func findMarks(prompt string, texts map[string]MediaKind) (marks []mark) {
	names := slices.SortedFunc(maps.Keys(texts), func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for at := 0; at < len(prompt); {
		next := strings.IndexAny(prompt[at:], "<[")
		if next < 0 {
			break
		}
		at += next
		n := 1
		for _, name := range names {
			if strings.HasPrefix(prompt[at:], name) {
				n = len(name)
				marks = append(marks, mark{at, at + n, texts[name]})
				break
			}
		}
		if _, images := texts["[img]"]; images && n == 1 {
			if numbered := numberedMark(prompt[at:]); numbered > 0 {
				n = numbered
				marks = append(marks, mark{at, at + n, Image})
			}
		}
		at += n
	}
	return marks
}

// numberedMark is the length of "[img-N]" at the beginning of a text, 0 for none.
func numberedMark(text string) int {
	rest, ok := strings.CutPrefix(text, "[img-")
	if !ok {
		return 0
	}
	n := 0
	for n < len(rest) && n < 6 && rest[n] >= '0' && rest[n] <= '9' {
		n++
	}
	if n == 0 || n == len(rest) || rest[n] != ']' {
		return 0
	}
	return len("[img-]") + n
}

// modelMarks are the placeholders of the model for the kinds of media that are there.
func modelMarks(media []Media, info EncoderInfo) map[string]MediaKind {
	texts := map[string]MediaKind{}
	for _, m := range media {
		for _, text := range info.Placeholders[m.Kind] {
			texts[text] = m.Kind
		}
		if m.Kind == Image {
			for _, text := range imageMarks {
				texts[text] = Image
			}
		}
	}
	return texts
}

// assign gives each marker its item: the next of its kind, or the next of all that no
// other took. All must be taken.
func assign(marks []mark, media []Media) (items []int, ok bool) {
	if len(marks) != len(media) {
		return nil, false
	}
	taken := make([]bool, len(media))
	items = make([]int, len(marks))
	for i, m := range marks {
		items[i] = -1
		for j := range media {
			if !taken[j] && (m.kind == "" || m.kind == media[j].Kind) {
				items[i], taken[j] = j, true
				break
			}
		}
		if items[i] < 0 {
			return nil, false
		}
	}
	return items, true
}

// frame is what may stand around an item.
type frame struct{ before, after string }

// frameOf is the text with which a layout begins and the one with which it ends.
func frameOf(l Layout) frame {
	if len(l) == 0 {
		return frame{}
	}
	return frame{l[0].Text, l[len(l)-1].Text}
}

// longest is the length of the longest text of frames that stands in its place.
func longest(frames []frame, stands func(f frame) (text string, ok bool)) (n int) {
	for _, f := range frames {
		if text, ok := stands(f); ok {
			n = max(n, len(text))
		}
	}
	return n
}

// openingOf is the place behind the last beginning of a user's turn, 0 for none.
func openingOf(prompt string) int {
	best := 0
	for _, o := range openers {
		if at := strings.LastIndex(prompt, o); at >= 0 {
			best = max(best, at+len(o))
		}
	}
	return best
}

// counts says how many items of each kind a request has.
func counts(media []Media) string {
	var texts []string
	for _, kind := range []MediaKind{Image, Audio, Video} {
		n := 0
		for i := range media {
			if media[i].Kind == kind {
				n++
			}
		}
		if n > 0 {
			texts = append(texts, fmt.Sprintf("%d in %s", n, kind))
		}
	}
	return strings.Join(texts, ", ")
}

// markers says how many markers there are for each kind.
func markers(marks []mark) string {
	var texts []string
	for _, kind := range []MediaKind{Image, Audio, Video, ""} {
		n := 0
		for _, m := range marks {
			if m.kind == kind {
				n++
			}
		}
		what := string(kind)
		if kind == "" {
			what = "media of any kind"
		}
		if n > 0 {
			texts = append(texts, count(n, "marker", "markers")+" for "+what)
		}
	}
	return strings.Join(texts, ", ")
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
