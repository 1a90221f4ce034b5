package repair

import (
	"slices"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
)

// epochBatch is a batch that carries a leader epoch.
type epochBatch struct {
	base  storage.Offset // of its segment
	pos   storage.Pos
	first storage.Offset
	epoch int32
}

// epochPatch is a batch that gets another leader epoch.
type epochPatch struct {
	epochBatch
	to int32
}

// epochPlan says how the leader epochs of a log are made to agree.
type epochPlan struct {
	patches []epochPatch
	file    state.Epochs // what leader-epoch-checkpoint should hold
}

// maxEpochRuns bounds the search for the batches that are out of order.
const maxEpochRuns = 3000

// planEpochs decides between the batches of a log and its leader-epoch-checkpoint (nil where it cannot be read). No checksum covers a batch's leader epoch: a
// single batch that disagrees with those around it is what is wrong; where most of them disagree with the file, the file is. start and end bound the log.
func planEpochs(list []epochBatch, file state.Epochs, start, end storage.Offset, clean bool) *epochPlan {
	want := make([]int32, len(list))
	for i := range list {
		want[i] = list[i].epoch
	}
	newer := newerTail(list, file, clean)
	match, wrong := 0, []int{}
	for i := range list[:newer] {
		if e, ok := file.At(list[i].first); ok {
			if e.Epoch == list[i].epoch {
				match++
			} else {
				wrong = append(wrong, i)
			}
		}
	}
	if len(wrong) <= match {
		for _, i := range wrong {
			e, _ := file.At(list[i].first)
			want[i] = e.Epoch
		}
	}
	inOrder(want)
	p := &epochPlan{}
	for i := range list {
		if want[i] != list[i].epoch {
			p.patches = append(p.patches, epochPatch{list[i], want[i]})
		}
	}
	p.file = agree(list, want, file, start)
	p.file, _ = p.file.TruncateFrom(end + 1)
	return p
}

// newerTail returns the place from which on all batches have epochs above the file's last. A broker that was killed may have lost their entries; of one that
// closed its log in order a single such batch is taken for wrong.
func newerTail(list []epochBatch, file state.Epochs, clean bool) int {
	last, ok := file.Last()
	i := len(list)
	for ok && i > 0 && list[i-1].epoch > last.Epoch {
		i--
	}
	if clean && len(list)-i == 1 {
		return len(list)
	}
	return i
}

// agree returns the file where the batches agree with it, with entries for newer epochs, or else what the batches give.
func agree(list []epochBatch, want []int32, file state.Epochs, start storage.Offset) state.Epochs {
	out := slices.Clone(file)
	for i := range list {
		last, ok := out.Last()
		switch e, in := out.At(list[i].first); {
		case in && e.Epoch == want[i]:
			continue
		case ok && want[i] > last.Epoch && list[i].first > last.Start:
			out, _ = out.Assign(want[i], list[i].first)
		case !in && ok: // before the first entry: nothing is said of it
		default:
			return rebuilt(list, want, start)
		}
	}
	return out
}

func rebuilt(list []epochBatch, want []int32, start storage.Offset) state.Epochs {
	var out state.Epochs
	for i := range list {
		if last, ok := out.Last(); !ok || want[i] > last.Epoch {
			out, _ = out.Assign(want[i], list[i].first)
		}
	}
	out, _ = out.TruncateBefore(start)
	return out
}

// inOrder changes as few epochs as it can so that they do not descend: those outside the heaviest ascending choice get the epoch before them.
func inOrder(e []int32) {
	type run struct {
		epoch   int32
		from, n int
	}
	var runs []run
	for i, x := range e {
		if n := len(runs); n > 0 && runs[n-1].epoch == x {
			runs[n-1].n++
		} else {
			runs = append(runs, run{x, i, 1})
		}
	}
	if len(runs) > maxEpochRuns || slices.IsSorted(e) {
		return
	}
	weight, before := make([]int, len(runs)), make([]int, len(runs))
	best := 0
	for i := range runs {
		before[i] = -1
		for j := range i {
			if runs[j].epoch <= runs[i].epoch && weight[j] > weight[i] {
				weight[i], before[i] = weight[j], j
			}
		}
		weight[i] += runs[i].n
		if weight[i] > weight[best] {
			best = i
		}
	}
	kept := make([]bool, len(runs))
	first := best
	for i := best; i >= 0; i = before[i] {
		kept[i], first = true, i
	}
	epoch := runs[first].epoch
	for i, r := range runs {
		if kept[i] {
			epoch = r.epoch
			continue
		}
		for j := range r.n {
			e[r.from+j] = epoch
		}
	}
}
