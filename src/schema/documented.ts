import { TABLES } from '../warehouse/tables.ts';

/**
 * Paths of members that the service documents as maps whose names are words of people, such as the foods of a meal: inside an
 * event of this type.
 */
export function documentedMaps(type: string): ReadonlySet<string> {
  const documents = TABLES.documentsOf(type).filter(({ events }) => events?.member === 'data');
  return new Set(
    documents.flatMap(({ nested = [], events }) =>
      nested.flatMap(({ at, each }) =>
        each === 'map' ? [`/data${events?.each === 'array' ? '/*' : ''}/${at.replaceAll('.', '/')}`] : [],
      ),
    ),
  );
}
