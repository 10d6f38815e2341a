// The loads with net/http and pgx, as TechEmpower's entries have them.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"math/rand/v2"
	"net/http"
	"os"
	"sort"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const one = "SELECT id, randomnumber FROM world WHERE id = $1"

type world struct {
	ID           int32 `json:"id"`
	RandomNumber int32 `json:"randomnumber"`
}

type fortune struct {
	ID      int32
	Message string
}

var page = template.Must(template.New("").Parse(`<!DOCTYPE html><html><head><title>Fortunes</title></head><body><table><tr><th>id</th><th>message</th></tr>{{range .}}<tr><td>{{.ID}}</td><td>{{.Message}}</td></tr>{{end}}</table></body></html>`))

func answer(w http.ResponseWriter, value any, err error) {
	if err != nil {
		http.Error(w, err.Error(), 500)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(value)
}

// One after the other; BATCH=1: in one round trip.
func worlds(ctx context.Context, pool *pgxpool.Pool, first int) ([]world, error) {
	rows := make([]world, 20)
	if os.Getenv("BATCH") == "" {
		for i := range rows {
			if err := pool.QueryRow(ctx, one, first+i).Scan(&rows[i].ID, &rows[i].RandomNumber); err != nil {
				return nil, err
			}
		}
		return rows, nil
	}
	batch := &pgx.Batch{}
	for i := range rows {
		batch.Queue(one, first+i)
	}
	results := pool.SendBatch(ctx, batch)
	defer results.Close()
	for i := range rows {
		if err := results.QueryRow().Scan(&rows[i].ID, &rows[i].RandomNumber); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func number(r *http.Request) int {
	id, _ := strconv.Atoi(r.PathValue("id"))
	return id
}

func main() {
	config, err := pgxpool.ParseConfig(os.Getenv("DATABASE"))
	if err != nil {
		panic(err)
	}
	connections, _ := strconv.Atoi(os.Getenv("CONNECTIONS"))
	config.MaxConns = int32(connections)
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		panic(err)
	}
	http.HandleFunc("/db/{id}", func(w http.ResponseWriter, r *http.Request) {
		var row world
		err := pool.QueryRow(r.Context(), one, number(r)).Scan(&row.ID, &row.RandomNumber)
		answer(w, row, err)
	})
	http.HandleFunc("/queries/{id}", func(w http.ResponseWriter, r *http.Request) {
		rows, err := worlds(r.Context(), pool, number(r))
		answer(w, rows, err)
	})
	http.HandleFunc("/fortunes", func(w http.ResponseWriter, r *http.Request) {
		found, err := pool.Query(r.Context(), "SELECT id, message FROM fortune")
		if err != nil {
			http.Error(w, err.Error(), 500)
			return
		}
		rows, err := pgx.CollectRows(found, pgx.RowToStructByPos[fortune])
		if err != nil {
			http.Error(w, err.Error(), 500)
			return
		}
		rows = append(rows, fortune{Message: "Additional fortune added at request time."})
		sort.Slice(rows, func(a, b int) bool { return rows[a].Message < rows[b].Message })
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		page.Execute(w, rows)
	})
	http.HandleFunc("/updates/{id}", func(w http.ResponseWriter, r *http.Request) {
		rows, err := worlds(r.Context(), pool, number(r))
		if err == nil {
			ids, numbers := make([]int32, 20), make([]int32, 20)
			for i := range rows {
				rows[i].RandomNumber = rand.Int32N(10000) + 1
				ids[i], numbers[i] = rows[i].ID, rows[i].RandomNumber
			}
			_, err = pool.Exec(r.Context(), "UPDATE world SET randomnumber = new.number FROM unnest($1::int[], $2::int[]) AS new (id, number) WHERE world.id = new.id", ids, numbers)
		}
		answer(w, rows, err)
	})
	fmt.Println("ready")
	panic(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
