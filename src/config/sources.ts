import { MillraceError } from '../core/errors.ts';
import type { SourceModule } from '../core/source.ts';
import type { LoadedConfig } from './config.ts';
import type { SourceConfig } from './lists.ts';
import { scrub, secretsOf } from './redact.ts';
import { problemLines } from './sinks.ts';

export type LoadSourceModule = (type: SourceConfig['type']) => Promise<SourceModule>;

/** A source whose options its module has accepted; ready for `module.createSource(options, …)`. */
export interface ResolvedSource {
  readonly name: string;
  readonly module: SourceModule;
  readonly options: unknown;
}

/** @throws MillraceError config_invalid; a line for each problem, naming the key and quoting no secret. */
export async function resolveSources(
  { config, substituted }: Pick<LoadedConfig, 'config' | 'substituted'>,
  loadModule: LoadSourceModule,
): Promise<readonly ResolvedSource[]> {
  const problems: string[] = [];
  const resolved: ResolvedSource[] = [];
  for (const [name, source] of Object.entries(config.sources)) {
    const module = await loadModule(source.type);
    try {
      resolved.push({ name, module, options: module.parseOptions(source.options) });
    } catch (error) {
      const secrets = secretsOf('sources', name, source.options, substituted);
      problems.push(...problemLines(`sources.${name}`, error).map((line) => scrub(line, secrets)));
    }
  }
  if (problems.length > 0) throw new MillraceError('config_invalid', problems.join('\n'));
  return resolved;
}
