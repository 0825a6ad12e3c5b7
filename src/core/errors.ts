import { FolderRefused } from '../lib/folder-refused.ts';
import { StorageError, WHAT_TO_DO } from './storage.ts';

/** `status` is the HTTP answer, `exit` the exit code of a command, `retryable` whether the same can succeed later. */
interface Entry {
  readonly title: string;
  readonly status?: number;
  readonly exit?: number;
  readonly retryable: boolean;
}

export const EXIT = { done: 0, failed: 1, usage: 2, partial: 3, difference: 4 } as const;

/** Retryable, by the sender or by the person who ran the command. */
const AGAIN = true;

function answer(status: number, title: string, retryable = false): Entry & { readonly status: number } {
  return { title, status, retryable };
}

function end(exit: keyof typeof EXIT, title: string, retryable = false): Entry & { readonly exit: number } {
  return { title, exit: EXIT[exit], retryable };
}

/** Every error that a user can meet; the reference in docs is generated from it. */
export const CATALOGUE = {
  signature_missing: answer(401, 'Signature headers are missing'),
  signature_invalid: answer(401, 'Signature does not match'),
  signature_foreign: answer(401, 'Signature is by a secret of other teams'),
  timestamp_invalid: answer(401, 'Signature timestamp is not a number of seconds'),
  timestamp_too_old: answer(401, 'Signature timestamp is too old'),
  timestamp_too_new: answer(401, 'Signature timestamp is in the future'),
  not_found: answer(404, 'No such path'),
  method_not_allowed: answer(405, 'Method not allowed'),
  too_slow: answer(408, 'The request took too long to arrive', AGAIN),
  body_too_large: answer(413, 'Body is too large'),
  media_type_unsupported: answer(415, 'Media type is not JSON'),
  encoding_unsupported: answer(415, 'Content encoding is not supported'),
  body_ratio_exceeded: answer(413, 'Compression ratio of the body is too high'),
  body_in_pieces: answer(400, 'Body arrives in too many small pieces', AGAIN),
  request_malformed: answer(400, 'Request is not well-formed HTTP'),
  address_over_budget: answer(429, 'Too much from this address could not be verified', AGAIN),
  body_malformed: answer(400, 'Body could not be read', AGAIN),
  unfit: answer(422, 'Event is invalid'),
  internal: answer(500, 'Internal error', AGAIN),
  shutting_down: answer(503, 'Shutting down', AGAIN),
  backlog_full: answer(503, 'Backlog is above its limit', AGAIN),
  overloaded: answer(503, 'Too many bodies are being received at once', AGAIN),
  not_confirmed: answer(503, 'The event was not made durable in time', AGAIN),
  sink_refused: answer(422, 'A required sink refused the event'),
  journal_full: { ...answer(503, 'Journal is full', AGAIN), exit: EXIT.failed },
  journal_failed: { ...answer(503, 'Journal cannot be written', AGAIN), exit: EXIT.failed },
  journal_unknown: { ...answer(503, 'Brokers do not say how far the journal is', AGAIN), exit: EXIT.failed },
  journal_in_use: end('failed', 'Journal is in use by another process', AGAIN),
  journal_unreadable: end('failed', 'Journal cannot be opened'),
  journal_damaged: end('failed', 'Journal is damaged, and nothing says how far its sinks are'),
  receipts_behind: end('failed', 'The log of receipts does not have the newest events yet', AGAIN),
  receipts_in_use: end('usage', 'The log of receipts is in use by another process', AGAIN),
  receipts_unusable: end('failed', 'The log of receipts cannot be used'),
  journal_missing: end('failed', 'No journal found'),
  config_missing: end('usage', 'Config file cannot be read'),
  config_invalid: end('usage', 'Config is not valid'),
  sink_waited_for: end('usage', 'Events are waiting for a sink that is not in the config'),
  journal_waited_for: end('usage', 'Events are waiting in a journal that the config does not name'),
  secret_missing: end('usage', 'No signing secret is configured'),
  output_unwritable: end('failed', 'Output cannot be written', AGAIN),
  interrupted: end('failed', 'Interrupted', AGAIN),
  usage: end('usage', 'Command line is not valid'),
  address_unavailable: end('failed', 'Cannot listen on the address', AGAIN),
  folder_in_use: end('usage', 'Another command is writing there', AGAIN),
  table_changed: end('failed', 'Another program has changed a table'),
  folder_unwritable: end('failed', 'Folder cannot be read or written', AGAIN),
  file_unusable: end('failed', 'File cannot be used', AGAIN),
  sink_module_invalid: end('usage', 'Sink module cannot be used'),
  receiver_unreachable: end('failed', 'Receiver cannot be reached', AGAIN),
  archive_unreadable: end('failed', 'Archive cannot be read'),
  store_unreadable: end('failed', 'Object store cannot be used', AGAIN),
  keys_unusable: end('failed', 'Key store cannot be used', AGAIN),
  keys_in_use: end('failed', 'Key store is in use', AGAIN),
  master_key_wrong: end('usage', 'Master key is wrong'),
  keys_stale: end('difference', 'Key store was changed or replaced by an older copy'),
  ledger_forged: end('difference', 'Erasure ledger was changed after it was signed'),
  proof_unusable: end('failed', 'Signing key or ledger cannot be used'),
  archive_sealed: end('usage', 'Archive is sealed'),
  archive_in_use: end('usage', 'Archive is in use by another process', AGAIN),
  audit_unwritable: { ...answer(500, 'Audit log cannot be written', AGAIN), exit: EXIT.failed },
  erasure_unreadable: end('failed', 'Erasure folder cannot be used'),
  erasure_stale: end('difference', 'Erasure folder was replaced by an older copy'),
  erasure_in_use: end('usage', 'Erasure folder is in use', AGAIN),
  erasure_begun: end('failed', 'Erasure has already begun'),
  bulk_op_ended: end('failed', 'The service ended its bulk operation early', AGAIN),
  bulk_op_stuck: end('failed', 'The bulk operation makes no progress', AGAIN),
  service_lost: end('partial', 'The service did not answer', AGAIN),
  rows_missing: end('failed', 'Fetched rows are missing', AGAIN),
  tables_invalid: end('usage', 'Table definitions are not valid'),
  database_unavailable: end('failed', 'Database is not available', AGAIN),
  database_refused: end('failed', 'Database refused'),
  database_in_use: end('usage', 'Another process is loading into the database', AGAIN),
  database_not_loaded: end('usage', 'Nothing was loaded into the database'),
  document_unreadable: end('failed', 'Document cannot be read'),
} as const satisfies Record<string, Entry>;

export type ErrorCode = keyof typeof CATALOGUE;

/** An error of the catalogue; its detail names the key, file, address or event concerned. */
export class MillraceError extends Error {
  readonly code: ErrorCode;
  readonly detail: string;
  readonly #exit: number | null;

  /** @param options `exit` where it is not that of the catalogue */
  constructor(code: ErrorCode, detail: string, options: ErrorOptions & { readonly exit?: number } = {}) {
    const { exit = null, ...rest } = options;
    super(`${CATALOGUE[code].title}: ${detail}`, rest);
    this.#exit = exit;
    this.name = 'MillraceError';
    this.code = code;
    this.detail = detail;
  }

  get retryable(): boolean {
    return CATALOGUE[this.code].retryable;
  }

  /** Exit code of a command that ends with this error. */
  get exit(): number {
    const entry: Entry = CATALOGUE[this.code];
    return this.#exit ?? entry.exit ?? EXIT.failed;
  }
}

/** The error of a command that cannot use a folder or object store. */
export function folderError(path: string, error: unknown): MillraceError {
  if (error instanceof MillraceError) return error;
  if (error instanceof FolderRefused)
    return new MillraceError(error.why === 'in_use' ? 'folder_in_use' : 'usage', error.message, {
      cause: error,
    });
  if (error instanceof StorageError && path.includes('://'))
    return new MillraceError('store_unreadable', `${path}: ${error.message}: ${WHAT_TO_DO[error.fault]}`, {
      cause: error,
    });
  return new MillraceError('folder_unwritable', `${path}: ${messageOf(error)}`, { cause: error });
}

/** The message of anything thrown; of a MillraceError only its detail. */
export function detailOf(error: unknown): string {
  return error instanceof MillraceError ? error.detail : messageOf(error);
}

/** The message of anything thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
