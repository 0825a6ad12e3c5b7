import type { Command } from 'commander';
import { compactArchive, type CompactReport } from '../archive/compact.ts';
import { MANIFEST } from '../core/archive.ts';
import { EXIT } from '../core/errors.ts';
import { formatBytes, parseBytes, parseDuration } from '../lib/units.ts';
import { visible } from '../lib/visible.ts';
import { openProof, readProof } from '../privacy/proof/open.ts';
import { actAsOwnerOf } from './as-owner.ts';
import { configOf } from './config-options.ts';
import { note, print, type Io } from './io.ts';
import { commandOf, type OptionsOf, readBy } from './options.ts';
import { storageOf, withPlaces } from './places.ts';
import { StatusLine } from './status-line.ts';

const HELP = `
Examples:
  millrace archive compact ./data/archive --dry-run
  millrace archive compact ./data/archive --config config/millrace.yaml
  millrace archive compact s3://acme/archive --config config/millrace.yaml --min-age 1d
  millrace archive compact gs://acme/archive --target-size 256MiB

In each folder of the archive, small closed files become one: their bytes one after another, which is a valid file of the same
kind. Files of half the target size or more stay as they are, and so do .zst files, files that the manifest does not list, which
are named, and files written less than --min-age ago. The manifest gets a line that names the old files with their hashes, so archive verify
can still check each of them inside the new one. --config finds the key that signs the line; a signed manifest needs it.

The receiver may run meanwhile, and other commands of millrace read each event once at any moment. Programs that read the files
without the manifest can see the events of one new file twice until the old files are removed. Memory: about the target size.
After a kill run the same command again: it removes what was left and continues.

Exit codes: 0 done, 1 not readable, 2 usage or config, or another process is compacting, 3 interrupted, or files were left
alone for the reasons that are printed.`;

const OPTIONS = {
  '--target-size <size>': readBy(targetSize, 'no new file becomes larger', '128MiB'),
  '--min-age <time>': readBy(parseDuration, 'leave files alone that are younger', '1h'),
  '--config <file>': 'sign as this config says, and reach stores by it',
  '--dry-run': 'only print what it would do',
  '--json':
    'print one JSON document: {path, dry_run, made: [{file, files, bytes}], replaced, bytes, cleared, problems: [{file, reason}], unlisted: [file], complete}',
};
type Options = OptionsOf<typeof OPTIONS>;

export function compactCommand(io: Io): Command {
  return commandOf('compact', OPTIONS, HELP)
    .description('join small closed files of each folder into large ones')
    .argument('<path>', 'the folder of the archive, or its URL: s3://, azblob:// or gs://')
    .action((path: string, options: Options) => compact(path, options, io));
}

/** A buffer holds one file. */
function targetSize(text: string): number {
  const bytes = parseBytes(text);
  if (bytes >= 1024 && bytes <= 1024 ** 3) return bytes;
  throw new RangeError('must be from 1KiB to 1GiB');
}

async function compact(path: string, options: Options, io: Io): Promise<void> {
  const { targetSize: targetBytes, minAge, json = false, dryRun = false } = options;
  const config = options.config === undefined ? null : configOf(options, io).config;
  if (!dryRun) actAsOwnerOf(path, MANIFEST);
  const status = new StatusLine(io);
  const made: { file: string; files: number; bytes: number }[] = [];
  const problems: { file: string; reason: string }[] = [];
  const unlisted: string[] = [];
  const report = await withPlaces(storageOf(options, io, [path]), (places) =>
    compactArchive(path, {
      places,
      targetBytes,
      minAge,
      dryRun,
      now: Date.now(),
      trust: { keys: new Set(config === null ? [] : readProof(config).trusted), receipts: null },
      proof: config === null ? undefined : openProof(config),
      signal: io.signal,
      onProgress: (done, total, file) =>
        status.show(() => `joining ${total - done} files${status.pace(done, total)}: ${file}`),
      onMade: (one) => {
        made.push(one);
        const said = `${dryRun ? 'would join' : 'joined'} ${one.files} files into ${one.file}, ${one.bytes} bytes`;
        if (!json) print(io, visible(said));
      },
      onUnlisted: (file) => {
        unlisted.push(file);
        note(io, visible(`not joined ${file}: the manifest does not list it`));
      },
      onProblem: (file, reason) => {
        problems.push({ file, reason });
        note(io, visible(`left alone ${file}: ${reason}`));
      },
    }),
  );
  const { replaced, bytes, cleared, complete } = report;
  if (json)
    print(
      io,
      JSON.stringify(
        { path, dry_run: dryRun, made, replaced, bytes, cleared, problems, unlisted, complete },
        null,
        2,
      ),
    );
  else print(io, summary(report, dryRun));
  if (!complete || problems.length > 0) io.setExit(EXIT.partial);
}

function summary({ made, replaced, bytes, cleared, complete }: CompactReport, dryRun: boolean): string {
  const left = cleared === 0 ? '' : `; removed ${plural(cleared, 'file')} that an earlier run had left`;
  const end = complete ? '' : '; interrupted: run the same command again';
  if (made === 0) return `nothing to join${left}${end}`;
  const what = dryRun ? 'would become' : 'became';
  return `${plural(replaced, 'file')} ${what} ${made}, ${formatBytes(bytes)}${left}${end}`;
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
