import { dirname } from 'node:path';
import { MillraceError, messageOf } from '../core/errors.ts';
import type { SinkModule } from '../core/sink.ts';
import type { LoadedConfig } from './config.ts';
import type { SinkConfig } from './lists.ts';
import { scrub, secretsOf } from './redact.ts';

/** Finds the module for a sink's `type`; paths are relative to `baseFolder`, the config file's. */
export type LoadSinkModule = (type: string, baseFolder: string) => Promise<SinkModule>;

/** A sink whose options its module has accepted; ready for `module.createSink(options, …)`. */
export interface ResolvedSink {
  readonly name: string;
  readonly type: string;
  readonly required: boolean;
  readonly module: SinkModule;
  /** What `module.parseOptions` returned. */
  readonly options: unknown;
}

/**
 * Loads the module of each sink and lets it check its options. The loader is a parameter because config knows no vendor.
 * @param names only these sinks; all when left out.
 * @throws MillraceError config_invalid, or sink_module_invalid when modules are all that is wrong; a line for each
 *   problem, which names the key (`sinks.hubs.connectionString`) and never quotes a secret.
 */
export async function resolveSinks(
  loaded: Pick<LoadedConfig, 'config' | 'file' | 'substituted'>,
  loadModule: LoadSinkModule,
  names: readonly string[] = Object.keys(loaded.config.sinks),
): Promise<readonly ResolvedSink[]> {
  const failures: MillraceError[] = [];
  const resolved: ResolvedSink[] = [];
  for (const name of names) {
    const sink = loaded.config.sinks[name];
    if (sink === undefined) continue;
    try {
      resolved.push(await resolveSink(name, sink, dirname(loaded.file), loadModule));
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error;
      const secrets = secretsOf('sinks', name, sink.options, loaded.substituted);
      failures.push(new MillraceError(error.code, scrub(error.detail, secrets), { cause: error.cause }));
    }
  }
  if (failures.length === 0) return resolved;
  const code = failures.every((failure) => failure.code === 'sink_module_invalid')
    ? 'sink_module_invalid'
    : 'config_invalid';
  throw new MillraceError(code, failures.map((failure) => failure.detail).join('\n'));
}

async function resolveSink(
  name: string,
  sink: SinkConfig,
  base: string,
  load: LoadSinkModule,
): Promise<ResolvedSink> {
  const key = `sinks.${name}`;
  let module: SinkModule;
  try {
    module = await load(sink.type, base);
  } catch (error) {
    const detail = error instanceof MillraceError ? error.detail : messageOf(error);
    throw new MillraceError('sink_module_invalid', `${key}.type: ${detail}`, { cause: error });
  }
  try {
    return {
      name,
      type: sink.type,
      required: sink.required,
      module,
      options: module.parseOptions(sink.options),
    };
  } catch (error) {
    throw new MillraceError('config_invalid', problemLines(key, error).join('\n'), { cause: error });
  }
}

/** Issues as zod reports them; told by shape, since a user's own module may bring its own zod. */
interface Issues {
  readonly issues: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[];
}

/** `sinks.hubs.connectionString: …` from zod's issues, or from a message whose parts begin with the key concerned. */
export function problemLines(key: string, error: unknown): string[] {
  if (hasIssues(error)) {
    return error.issues.map(({ path, message }) => `${[key, ...path.map(String)].join('.')}: ${message}`);
  }
  const message = error instanceof MillraceError ? error.detail : messageOf(error);
  return message.split(PART).map((part) => {
    if (part.startsWith(key)) return part;
    const [, option, rest] = OPTION_FIRST.exec(part) ?? [];
    return option === undefined ? `${key}: ${part}` : `${key}.${option}: ${rest}`;
  });
}

/** Where a message about several keys is cut: at lines, and at semicolons that a further key follows. */
const PART = /\n|; (?=[a-z][\w.[\]-]*: )/;

/** "connectionString: must be …", or a sentence such as "`connectionString` must be …". */
const OPTION_FIRST =
  /^["'`]?([a-z][\w.[\]-]*)["'`]?(?:: | (?=(?:is|are|must|needs|has|holds|should|cannot|expects) ))(.*)$/;

function hasIssues(error: unknown): error is Issues {
  return error instanceof Error && 'issues' in error && Array.isArray(error.issues);
}
