import { FolderRefused } from '../lib/folder-refused.ts';
import { StorageError, WHAT_TO_DO } from './storage.ts';

/** One entry of the catalogue. `status` is the HTTP answer, `exit` the command's exit code; `retryable` tells both. */
interface Entry {
  readonly title: string;
  readonly status?: number;
  readonly exit?: number;
  readonly retryable: boolean;
}

export const EXIT = { done: 0, failed: 1, usage: 2, partial: 3, difference: 4 } as const;

/** Every error a user can meet, in one place; `docs` and a test hold the reference and this table together. */
export const CATALOGUE = {
  signature_missing: { title: 'Signature headers are missing', status: 401, retryable: false },
  signature_invalid: { title: 'Signature does not match', status: 401, retryable: false },
  timestamp_invalid: {
    title: 'Signature timestamp is not a number of seconds',
    status: 401,
    retryable: false,
  },
  timestamp_too_old: { title: 'Signature timestamp is too old', status: 401, retryable: false },
  timestamp_too_new: { title: 'Signature timestamp is in the future', status: 401, retryable: false },
  not_found: { title: 'No such path', status: 404, retryable: false },
  method_not_allowed: { title: 'Method not allowed', status: 405, retryable: false },
  too_slow: { title: 'The request took too long to arrive', status: 408, retryable: true },
  body_too_large: { title: 'Body is too large', status: 413, retryable: false },
  media_type_unsupported: { title: 'Media type is not JSON', status: 415, retryable: false },
  encoding_unsupported: { title: 'Content encoding is not supported', status: 415, retryable: false },
  body_ratio_exceeded: { title: 'Compression ratio of the body is too high', status: 413, retryable: false },
  body_in_pieces: { title: 'Body arrives in too many small pieces', status: 400, retryable: true },
  request_malformed: { title: 'Request is not well-formed HTTP', status: 400, retryable: false },
  address_over_budget: {
    title: 'Too much from this address could not be verified',
    status: 429,
    retryable: true,
  },
  body_malformed: { title: 'Body could not be read', status: 400, retryable: true },
  unfit: { title: 'Event is invalid', status: 422, retryable: false },
  internal: { title: 'Internal error', status: 500, retryable: true },
  shutting_down: { title: 'Shutting down', status: 503, retryable: true },
  backlog_full: { title: 'Backlog is above its limit', status: 503, retryable: true },
  overloaded: { title: 'Too many bodies are being received at once', status: 503, retryable: true },
  not_confirmed: { title: 'The event was not made durable in time', status: 503, retryable: true },
  sink_refused: { title: 'A required sink refused the event', status: 422, retryable: false },
  journal_full: { title: 'Journal is full', status: 503, exit: EXIT.failed, retryable: true },
  journal_failed: { title: 'Journal cannot be written', status: 503, exit: EXIT.failed, retryable: true },
  journal_in_use: { title: 'Journal is in use by another process', exit: EXIT.failed, retryable: true },
  journal_unreadable: { title: 'Journal cannot be opened', exit: EXIT.failed, retryable: false },
  receipts_behind: {
    title: 'The log of receipts does not have the newest events yet',
    exit: EXIT.failed,
    retryable: true,
  },
  receipts_in_use: {
    title: 'The log of receipts is in use by another process',
    exit: EXIT.usage,
    retryable: true,
  },
  receipts_unusable: { title: 'The log of receipts cannot be used', exit: EXIT.failed, retryable: false },
  journal_missing: { title: 'No journal found', exit: EXIT.failed, retryable: false },
  config_missing: { title: 'Config file cannot be read', exit: EXIT.usage, retryable: false },
  config_invalid: { title: 'Config is not valid', exit: EXIT.usage, retryable: false },
  sink_waited_for: {
    title: 'Events are waiting for a sink that is not in the config',
    exit: EXIT.usage,
    retryable: false,
  },
  secret_missing: { title: 'No signing secret is configured', exit: EXIT.usage, retryable: false },
  output_unwritable: { title: 'Output cannot be written', exit: EXIT.failed, retryable: true },
  interrupted: { title: 'Interrupted', exit: EXIT.failed, retryable: true },
  usage: { title: 'Command line is not valid', exit: EXIT.usage, retryable: false },
  address_unavailable: { title: 'Cannot listen on the address', exit: EXIT.failed, retryable: true },
  worker_failed: { title: 'Receiving process failed', exit: EXIT.failed, retryable: true },
  folder_in_use: { title: 'Another command is writing there', exit: EXIT.usage, retryable: true },
  table_changed: { title: 'Another program has changed a table', exit: EXIT.failed, retryable: false },
  folder_unwritable: { title: 'Folder cannot be written', exit: EXIT.failed, retryable: true },
  file_unusable: { title: 'File cannot be used', exit: EXIT.failed, retryable: true },
  sink_module_invalid: { title: 'Sink module cannot be used', exit: EXIT.usage, retryable: false },
  receiver_unreachable: { title: 'Receiver cannot be reached', exit: EXIT.failed, retryable: true },
  archive_unreadable: { title: 'Archive cannot be read', exit: EXIT.failed, retryable: false },
  store_unreadable: { title: 'Object store cannot be used', exit: EXIT.failed, retryable: true },
  keys_unusable: { title: 'Key store cannot be used', exit: EXIT.failed, retryable: true },
  keys_in_use: { title: 'Key store is in use', exit: EXIT.failed, retryable: true },
  master_key_wrong: { title: 'Master key is wrong', exit: EXIT.usage, retryable: false },
  keys_stale: {
    title: 'Key store was changed or replaced by an older copy',
    exit: EXIT.difference,
    retryable: false,
  },
  keys_elsewhere: {
    title: 'Events are sealed with keys of another place',
    exit: EXIT.usage,
    retryable: false,
  },
  ledger_forged: {
    title: 'Erasure ledger was changed after it was signed',
    exit: EXIT.difference,
    retryable: false,
  },
  proof_unusable: { title: 'Signing key or ledger cannot be used', exit: EXIT.failed, retryable: false },
  archive_sealed: { title: 'Archive is sealed', exit: EXIT.usage, retryable: false },
  archive_in_use: { title: 'Archive is in use by another process', exit: EXIT.usage, retryable: true },
  audit_unwritable: { title: 'Audit log cannot be written', status: 500, exit: EXIT.failed, retryable: true },
  erasure_unreadable: { title: 'Erasure folder cannot be used', exit: EXIT.failed, retryable: false },
  erasure_in_use: { title: 'Erasure folder is in use', exit: EXIT.usage, retryable: true },
  erasure_begun: { title: 'Erasure has already begun', exit: EXIT.failed, retryable: false },
  state_unusable: { title: 'Sandbox state cannot be used', exit: EXIT.failed, retryable: false },
  bulk_op_ended: { title: 'The service ended its bulk operation early', exit: EXIT.failed, retryable: true },
  bulk_op_stuck: { title: 'The bulk operation makes no progress', exit: EXIT.failed, retryable: true },
  service_lost: { title: 'The service did not answer', exit: EXIT.partial, retryable: true },
  rows_missing: { title: 'Fetched rows are missing', exit: EXIT.failed, retryable: false },
  tables_invalid: { title: 'Table definitions are not valid', exit: EXIT.usage, retryable: false },
  database_unavailable: { title: 'Database is not available', exit: EXIT.failed, retryable: true },
  database_refused: { title: 'Database refused', exit: EXIT.failed, retryable: false },
  database_in_use: {
    title: 'Another process is loading into the database',
    exit: EXIT.usage,
    retryable: true,
  },
  document_unreadable: { title: 'Document cannot be read', exit: EXIT.failed, retryable: false },
} as const satisfies Record<string, Entry>;

export type ErrorCode = keyof typeof CATALOGUE;

/** An error with a code from the catalogue and a detail that names the key, file, address or event concerned. */
export class MillraceError extends Error {
  readonly code: ErrorCode;
  readonly detail: string;
  readonly #exit: number | null;

  /** @param options `exit` where the command has another exit code for it than the catalogue */
  constructor(code: ErrorCode, detail: string, options: ErrorOptions & { readonly exit?: number } = {}) {
    const { exit = null, ...rest } = options;
    super(`${CATALOGUE[code].title}: ${detail}`, rest);
    this.#exit = exit;
    this.name = 'MillraceError';
    this.code = code;
    this.detail = detail;
  }

  /** Exit code of a command that ends with this error. */
  get exit(): number {
    const entry: Entry = CATALOGUE[this.code];
    return this.#exit ?? entry.exit ?? EXIT.failed;
  }
}

/** What a command says that could not have its folder. */
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

/** The message of anything thrown, without the title of our own errors: for who says where it was. */
export function detailOf(error: unknown): string {
  return error instanceof MillraceError ? error.detail : messageOf(error);
}

/** The message of anything thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
